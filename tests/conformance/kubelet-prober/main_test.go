package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// converse sends these requests and returns the results by id; results without an id are under "".
func converse(t *testing.T, lines ...string) map[string]Answer {
	t.Helper()
	var out bytes.Buffer
	if err := serve(strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string]Answer{}
	decoder := json.NewDecoder(&out)
	for decoder.More() {
		var answer Answer
		if err := decoder.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		id := ""
		if answer.ID != nil {
			id = *answer.ID
		}
		answers[id] = answer
	}
	if len(answers) != len(lines) {
		t.Fatalf("%d requests, but %d results", len(lines), len(answers))
	}
	return answers
}

func question(id, handler, more string) string {
	return fmt.Sprintf(`{"id": %q, "podIP": "127.0.0.1", "timeoutSeconds": 0.5, "handler": %s%s}`, id, handler, more)
}

func TestVerdictsAreKubelets(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/bytes":
			_, _ = writer.Write([]byte("\xff<o>\n"))
		case "/away":
			http.Redirect(writer, request, "http://192.0.2.1/", http.StatusFound)
		case "/broken":
			writer.Header().Set("Content-Length", "9")
			_, _ = writer.Write([]byte("short"))
		default:
			writer.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer app.Close()
	port := app.Listener.Addr().(*net.TCPAddr).Port
	get := func(path string) string { return fmt.Sprintf(`{"httpGet": {"port": %d, "path": %q}}`, port, path) }
	answers := converse(t,
		question("success", get("/bytes"), ""),
		question("warning", get("/away"), ""),
		question("failure", get("/sick"), ""),
		question("error", get("/broken"), ""),
		question("named", `{"httpGet": {"port": "http"}}`, ""),
		question("tcp", fmt.Sprintf(`{"tcpSocket": {"port": %d}}`, port), ""),
		question("grpc", fmt.Sprintf(`{"grpc": {"port": %d}}`, port), ""),
	)
	for id, expected := range map[string]string{
		"success": `success "` + "\ufffd<o>\n" + `" no error`,
		"failure": `failure "HTTP probe failed with statuscode: 503" no error`,
		"error":   `failure "" unexpected EOF`,
		"named":   `unknown "" strconv.Atoi: parsing "http": invalid syntax`,
		"tcp":     `success "" no error`,
	} {
		failure := "no error"
		if answers[id].Error != nil {
			failure = *answers[id].Error
		}
		found := fmt.Sprintf("%s \"%s\" %s", answers[id].Result, answers[id].Output, failure)
		if found != expected {
			t.Errorf("%s: %s, expected %s", id, found, expected)
		}
	}
	if answers["warning"].Result != "warning" || answers["grpc"].Result != "failure" {
		t.Errorf("warning: %v, grpc: %v", answers["warning"].Finding, answers["grpc"].Finding)
	}
}

func TestProbesAreCounted(t *testing.T) {
	asked := 0
	app := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		if asked++; asked%2 == 0 {
			writer.WriteHeader(http.StatusNotFound)
		}
	}))
	defer app.Close()
	handler := fmt.Sprintf(`{"httpGet": {"port": %d}}`, app.Listener.Addr().(*net.TCPAddr).Port)
	answer := converse(t, question("many", handler, `, "repeat": 3, "warmUp": 2`))["many"]
	if asked != 5 || len(answer.LatenciesMicroseconds) != 3 {
		t.Errorf("got %d requests and the latencies %v, expected 5 requests and 3 latencies", asked, answer.LatenciesMicroseconds)
	}
	if answer.Result != "success" || answer.Results["success"] != 2 || answer.Results["failure"] != 1 {
		t.Errorf("%s, %v", answer.Result, answer.Results)
	}
}

func TestAFaultNamesWhatIsWrong(t *testing.T) {
	const tcp = `{"tcpSocket": {"port": 1}}`
	whole := question("a", tcp, "")
	for line, expected := range map[string]string{
		`no JSON`:                               ` invalid character 'o' in literal null`,
		`{"id": 1}`:                             ` json: cannot unmarshal number into Go struct field Question.id`,
		question("a", `{}`, ""):                 `a handler must have one of httpGet, tcpSocket, grpc`,
		question("a", `{"exec": {}}`, ""):       `a handler must not be exec, which needs a container`,
		question("a", `{"grpc": {"x": 1}}`, ""): `a unknown field "handler.grpc.x"`,
		question("a", tcp, `, "repeat": 0`):     `a repeat must be above 0, and warmUp must not be negative`,
		strings.Replace(whole, "127", "p", 1):   `a podIP must be an IP address`,
		strings.Replace(whole, "0.5", "0", 1):   `a timeoutSeconds must be above 0`,
		strings.Replace(whole, "0.5", "{}", 1):  `a json: cannot unmarshal object into Go struct field Question.timeoutSeconds`,
	} {
		for id, answer := range converse(t, line) {
			if found := id + " " + answer.Fault; !strings.HasPrefix(found, expected) || answer.Finding != nil {
				t.Errorf("%s: %s, expected %s", line, found, expected)
			}
		}
	}
}
