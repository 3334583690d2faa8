package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestServe(t *testing.T) {
	in := `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a"}]}}

{"metadata":{"name":"a"},"spec":{"resources":{"limits":{"memory":"64Mi"}},"containers":[{"name":"a","image":"a","resources":{"requests":{"memory":"96Mi"}}}]}}
{"metadata":{"name":"a"},"spec":{"containerz":[]}}
`
	var out bytes.Buffer
	if err := serve(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		`{"errors":[],"qosClass":"BestEffort","requests":null,"pod":{"metadata":{"name":"a","namespace":"default"},`,
		`{"errors":["spec.resources.requests: Invalid value: \"96Mi\": must be less than or equal to memory limit of 64Mi"],"qosClass":"Burstable","requests":{"memory":100663296000},`,
		`{"errors":["unknown field \"spec.containerz\""],"qosClass":"","requests":null}`,
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: %s", i, out.String())
		}
	}
}
