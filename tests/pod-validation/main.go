// Kubernetes' own validation of Pods as a program. It reads Pods as JSON lines from standard input,
// and writes one JSON line with the result for each. README.md describes both.
//
// The packages of k8s.io/kubernetes set the defaults and validate, as the API server does when a Pod
// is created; this program only returns their results.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	core "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper/qos"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	kjson "sigs.k8s.io/json"
)

// Result is one line of standard output.
type Result struct {
	// Errors are the API server's; none if it accepts the Pod.
	Errors []string `json:"errors"`
	// QOSClass is the QoS class that the API server writes into the status.
	QOSClass core.PodQOSClass `json:"qosClass"`
	// Requests are those of the Pod itself with defaults, in thousandths.
	Requests map[core.ResourceName]int64 `json:"requests"`
	// Pod has the defaults that the API server sets before it calls webhooks.
	Pod *v1.Pod `json:"pod,omitempty"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pod-validation:", err)
		os.Exit(1)
	}
}

// serve validates each line of in.
func serve(in io.Reader, out io.Writer) error {
	reader := bufio.NewReader(in)
	writer := bufio.NewWriter(out)
	encoder := json.NewEncoder(writer)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(validate(line)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// validate does what the API server does between the admission of a Pod and its storage. A field that
// the Pod's type does not have is an error, as it is for kubectl.
func validate(line []byte) Result {
	var versioned v1.Pod
	strict, err := kjson.UnmarshalStrict(line, &versioned)
	if err := errors.Join(append(strict, err)...); err != nil {
		return Result{Errors: []string{err.Error()}}
	}
	if versioned.Namespace == "" {
		versioned.Namespace = metav1.NamespaceDefault
	}
	legacyscheme.Scheme.Default(&versioned)
	var internal core.Pod
	if err := legacyscheme.Scheme.Convert(&versioned, &internal, nil); err != nil {
		return Result{Errors: []string{err.Error()}}
	}
	// As in pkg/registry/core/pod/strategy.go, whose package needs many others.
	podutil.DropDisabledPodFields(&internal, nil)
	result := Result{Errors: []string{}, QOSClass: qos.ComputePodQOS(&internal), Pod: &versioned}
	if internal.Spec.Resources != nil {
		result.Requests = map[core.ResourceName]int64{}
		for name, quantity := range internal.Spec.Resources.Requests {
			result.Requests[name] = quantity.MilliValue()
		}
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	options.ResourceIsPod = true
	for _, err := range validation.ValidatePodCreate(&internal, options) {
		result.Errors = append(result.Errors, err.Error())
	}
	return result
}
