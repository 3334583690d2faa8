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
	// ID is copied to the result.
	ID string `json:"id"`
	// PodIP is the address of the probed Pod.
	PodIP string `json:"podIP"`
	// TimeoutSeconds is an integer in Kubernetes; tests may use fractions.
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	// Handler is the handler of a Pod's probe.
	Handler v1.ProbeHandler `json:"handler"`
	// Repeat is the number of probes, which run one after the other.
	Repeat int `json:"repeat"`
	// WarmUp is the number of probes before those, whose results are not returned.
	WarmUp int `json:"warmUp"`
}

// Answer is one line of standard output: a finding, or an error in the request.
type Answer struct {
	// ID is null if the id of the request could not be parsed.
	ID    *string `json:"id"`
	Fault string  `json:"fault,omitempty"`
	*Finding
}

// Finding is the result of the kubelet's prober.
type Finding struct {
	// Result, Output and Error are the values that the prober returned for the last probe.
	Result probe.Result `json:"result"`
	Output string       `json:"output"`
	Error  *string      `json:"error,omitempty"`
	// LatenciesMicroseconds has one value for each probe, in order.
	LatenciesMicroseconds []float64 `json:"latenciesMicroseconds"`
	// Results counts the results of all probes. It is absent for a single probe.
	Results map[probe.Result]int `json:"results,omitempty"`
}

// answer runs the request in one line.
func answer(prober *Prober, line []byte) Answer {
	question, err := parse(line)
	if err != nil {
		// The id may be valid even if the rest is not.
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

// parse decodes a request as the API server decodes a Pod. A field that these types do not have is
// an error, because the result would be that of another probe.
func parse(line []byte) (Question, error) {
	question := Question{Repeat: 1}
	strict, err := kjson.UnmarshalStrict(line, &question)
	if err := errors.Join(append(strict, err)...); err != nil {
		return question, err
	}
	if _, err := netip.ParseAddr(question.PodIP); err != nil {
		return question, errors.New("podIP must be an IP address")
	}
	handler := question.Handler
	switch {
	case handler.Exec != nil:
		return question, errors.New("handler must not be exec, which needs a container")
	case handler.HTTPGet == nil && handler.TCPSocket == nil && handler.GRPC == nil:
		return question, errors.New("handler must have one of httpGet, tcpSocket, grpc")
	case question.TimeoutSeconds <= 0:
		return question, errors.New("timeoutSeconds must be above 0")
	case question.Repeat < 1 || question.WarmUp < 0:
		return question, errors.New("repeat must be above 0, and warmUp must not be negative")
	}
	return question, nil
}

// run makes the number of probes that the request asks for.
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
