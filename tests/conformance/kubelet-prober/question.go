package main

import (
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	kjson "sigs.k8s.io/json"
)

// Question is one line of standard input.
type Question struct {
	// ID comes back in the answer.
	ID string `json:"id"`
	// PodIP is the address of the Pod that is asked about.
	PodIP string `json:"podIP"`
	// TimeoutSeconds is a whole number in Kubernetes; fractions serve tests.
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	// Handler is the part of a Pod's probe that says what is asked.
	Handler v1.ProbeHandler `json:"handler"`
	// Repeat is how many probes there are, one after the other.
	Repeat int `json:"repeat"`
	// WarmUp is how many there are before, of which nothing is told.
	WarmUp int `json:"warmUp"`
}

// Answer is one line of standard output: a finding, or what was wrong with the question.
type Answer struct {
	// ID is null where none could be read.
	ID    *string `json:"id"`
	Fault string  `json:"fault,omitempty"`
	*Finding
}

// Finding is what kubelet's prober found.
type Finding struct {
	// Result, Output and Error are those of the last probe, as the prober returned them.
	Result probe.Result `json:"result"`
	Output string       `json:"output"`
	Error  *string      `json:"error,omitempty"`
	// LatenciesMicroseconds has one figure for each probe, in their order.
	LatenciesMicroseconds []float64 `json:"latenciesMicroseconds"`
	// Results counts the results of all probes, where there was more than one.
	Results map[probe.Result]int `json:"results,omitempty"`
}

// answer answers one line.
func answer(prober *Prober, line []byte) Answer {
	question, err := parse(line)
	if err != nil {
		// The id may be readable where the rest is not.
		var named struct {
			ID *string `json:"id"`
		}
		if json.Unmarshal(line, &named) != nil {
			named.ID = nil
		}
		return Answer{ID: named.ID, Fault: err.Error()}
	}
	return Answer{ID: &question.ID, Finding: run(prober, question)}
}

// parse reads a question as the API server reads a Pod; a field that these types do not know is an error here, since
// the verdict would be one on another probe.
func parse(line []byte) (Question, error) {
	question := Question{Repeat: 1}
	strict, err := kjson.UnmarshalStrict(line, &question)
	if err := errors.Join(append(strict, err)...); err != nil {
		return question, err
	}
	if _, err := netip.ParseAddr(question.PodIP); err != nil {
		return question, errors.New("podIP is no IP address")
	}
	handler := question.Handler
	switch {
	case handler.Exec != nil:
		return question, errors.New("handler is exec, which needs a container")
	case handler.HTTPGet == nil && handler.TCPSocket == nil && handler.GRPC == nil:
		return question, errors.New("handler is none of httpGet, tcpSocket, grpc")
	case question.TimeoutSeconds <= 0:
		return question, errors.New("timeoutSeconds must be above 0")
	case question.Repeat < 1 || question.WarmUp < 0:
		return question, errors.New("repeat must be above 0, and warmUp not below")
	}
	return question, nil
}

// run probes as often as it is asked to.
func run(prober *Prober, question Question) *Finding {
	timeout := time.Duration(question.TimeoutSeconds * float64(time.Second))
	for range question.WarmUp {
		_, _, _ = prober.Probe(question.Handler, question.PodIP, timeout)
	}
	finding := &Finding{LatenciesMicroseconds: make([]float64, 0, question.Repeat)}
	results := map[probe.Result]int{}
	for range question.Repeat {
		started := time.Now()
		result, output, err := prober.Probe(question.Handler, question.PodIP, timeout)
		took := time.Since(started)
		finding.LatenciesMicroseconds = append(finding.LatenciesMicroseconds, float64(took.Nanoseconds())/1e3)
		finding.Result, finding.Output, finding.Error = result, output, nil
		if err != nil {
			text := err.Error()
			finding.Error = &text
		}
		results[result]++
	}
	if question.Repeat > 1 {
		finding.Results = results
	}
	return finding
}
