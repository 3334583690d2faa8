// Parts of Istio that the tests compare ours with. Usage:
//
//	reference dns NAMESPACE DOMAIN ADDRESS TABLE   the DNS proxy of Istio's agent, with a name table from a file
//	reference configs TESTDATA FOLDER              the ProxyConfigs of Istio's own tests of bootstraps, as JSON
//	reference csr IDENTITY                         what Istio's registration authority says of a signing request
//	reference variables MODULE                     the environment variables of Istio's agent, one per line
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"

	"istio.io/istio/pkg/dns/client"
	nds "istio.io/istio/pkg/dns/proto"
	"istio.io/istio/security/pkg/pki/ra"
)

func main() {
	if len(os.Args) < 2 {
		must(fmt.Errorf("a command is missing"))
	}
	switch os.Args[1] {
	case "dns":
		dns(os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	case "configs":
		configs(os.Args[2], os.Args[3])
	case "csr":
		csr(os.Args[2])
	case "variables":
		variables(os.Args[2])
	default:
		must(fmt.Errorf("unknown command %q", os.Args[1]))
	}
}

func dns(namespace, domain, address, file string) {
	server, err := client.NewLocalDNSServer(namespace, domain, address)
	must(err)
	server.StartDNS()
	encoded, err := os.ReadFile(file)
	must(err)
	table := &nds.NameTable{}
	must(proto.Unmarshal(encoded, table))
	server.UpdateLookupTable(table)
	fmt.Println("ready")
	select {}
}

func configs(from, to string) {
	files, err := filepath.Glob(filepath.Join(from, "*.proxycfg"))
	must(err)
	must(os.MkdirAll(to, 0o755))
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		config := &mesh.ProxyConfig{}
		must(prototext.Unmarshal(text, config))
		encoded, err := protojson.Marshal(config)
		must(err)
		name := strings.TrimSuffix(filepath.Base(file), ".proxycfg")
		must(os.WriteFile(filepath.Join(to, name+".json"), encoded, 0o644))
	}
}

func csr(identity string) {
	request, err := io.ReadAll(os.Stdin)
	must(err)
	fmt.Println(ra.ValidateCSR(request, []string{identity}))
}

// agentPackages are the folders whose variables the agent reads; the agent is linked with many more, for istiod.
var agentPackages = []string{
	"pilot/cmd/pilot-agent", "pkg/bootstrap", "pkg/dns/client", "pkg/envoy", "pkg/istio-agent", "pkg/security", "pkg/wasm",
	"security/pkg/credentialfetcher", "security/pkg/nodeagent",
}

// variables prints the names in calls of env.Register, env.RegisterStringVar and so on.
func variables(module string) {
	found := map[string]bool{}
	for _, folder := range agentPackages {
		must(filepath.WalkDir(filepath.Join(module, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				ast.Inspect(file, func(node ast.Node) bool {
					if name := registered(node); name != "" {
						found[name] = true
					}
					return true
				})
			}
			return err
		}))
	}
	names := []string{}
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Println(strings.Join(names, "\n"))
}

// registered returns the name of the variable that a call registers, if it is a literal.
func registered(node ast.Node) string {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasPrefix(function.Sel.Name, "Register") {
		return ""
	}
	if library, ok := function.X.(*ast.Ident); !ok || library.Name != "env" {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	name, err := strconv.Unquote(literal.Value)
	must(err)
	return name
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
