// The kubelet's own prober as a program. It reads requests as JSON lines from standard input, and
// writes one JSON line with a result for each request to standard output, in the order in which the
// probes finish. README.md describes the protocol.
//
// The packages of k8s.io/kubernetes run the probes; this program only returns their results.
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
	// The log messages of Go's clients about malformed responses are not part of the results.
	klog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	err := checkVersion()
	switch {
	case err != nil:
	case len(os.Args) > 1 && os.Args[1] == "tls-server":
		err = serveTLS(os.Args[2:])
	default:
		err = serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet-prober:", err)
		os.Exit(1)
	}
}

// checkVersion returns an error if the program was built without the linker flags of a Kubernetes
// release: kubelet sends its version in the User-Agent of each probe.
func checkVersion() error {
	linked := version.Get()
	if linked.Major+"."+linked.Minor != version.DefaultKubeBinaryVersion {
		return fmt.Errorf("linked as Kubernetes %q.%q, but the code is that of %s: build it with ./justw oracle",
			linked.Major, linked.Minor, version.DefaultKubeBinaryVersion)
	}
	return nil
}

// serve runs all requests concurrently, and returns when in has ended and the last result is
// written.
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

// ask starts a goroutine for each line of in, and returns when all of them have finished.
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
