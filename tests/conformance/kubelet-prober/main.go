// Kubelet's own prober as a program: questions as JSON lines on standard input, answers as JSON lines on standard
// output, one for each question, in the order in which they end. README.md has the protocol.
//
// What a probe finds is for the packages of k8s.io/kubernetes to say; this program only passes it on.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

func main() {
	// What Go's clients say of odd applications is not an answer.
	klog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	err := checkVersion()
	if err == nil {
		err = serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet-prober:", err)
		os.Exit(1)
	}
}

// checkVersion refuses a build without the linker's flags of a Kubernetes release: kubelet says its version in the
// User-Agent of each probe.
func checkVersion() error {
	linked := version.Get()
	if linked.Major+"."+linked.Minor != version.DefaultKubeBinaryVersion {
		return fmt.Errorf("linked as Kubernetes %q.%q, but the code is that of %s: build it with ./justw oracle",
			linked.Major, linked.Minor, version.DefaultKubeBinaryVersion)
	}
	return nil
}

// serve answers all questions at once; it returns when in has ended and the last one is answered.
func serve(in io.Reader, out io.Writer) error {
	answers := make(chan Answer)
	var readError error
	go func() {
		readError = ask(in, answers)
		close(answers)
	}()
	encoder := json.NewEncoder(out)
	for answer := range answers {
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return readError
}

// ask starts a goroutine for each line of in, and waits for all of them.
func ask(in io.Reader, answers chan<- Answer) error {
	prober := NewProber()
	reader := bufio.NewReader(in)
	var asked sync.WaitGroup
	defer asked.Wait()
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			asked.Go(func() { answers <- answer(prober, line) })
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
