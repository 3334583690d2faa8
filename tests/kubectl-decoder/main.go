// kubectl-decoder decodes streams of documents as kubectl does, and prints the JSON that kubectl
// would send.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The size with which kubectl's resource builder looks for JSON at the beginning of a stream.
const bufferSize = 4096

// result is the answer to one stream.
type result struct {
	Documents []json.RawMessage `json:"documents"`
	// The error with which kubectl stops reading the stream.
	Error string `json:"error,omitempty"`
}

// decode follows StreamVisitor.Visit of k8s.io/cli-runtime/pkg/resource. kubectl decodes into a
// RawExtension, which takes the bytes as they are, as a RawMessage does.
func decode(text string) result {
	found := result{Documents: []json.RawMessage{}}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), bufferSize)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			if err != io.EOF {
				found.Error = err.Error()
			}
			return found
		}
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		document, err := object(raw)
		if err != nil {
			found.Error = err.Error()
			return found
		}
		found.Documents = append(found.Documents, document)
	}
}

// object reads the values as an unstructured object, whose numbers are int64 or float64.
func object(raw []byte) ([]byte, error) {
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// run reads a JSON string in each line, and writes a result for each.
func run(input io.Reader, output io.Writer) error {
	lines := json.NewDecoder(bufio.NewReader(input))
	buffered := bufio.NewWriter(output)
	results := json.NewEncoder(buffered)
	for {
		var text string
		if err := lines.Decode(&text); err == io.EOF {
			return buffered.Flush()
		} else if err != nil {
			return err
		}
		if err := results.Encode(decode(text)); err != nil {
			return err
		}
	}
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kubectl-decoder:", err)
		os.Exit(1)
	}
}
