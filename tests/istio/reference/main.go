// Parts of Istio that the tests compare ours with. Usage:
//
//	reference dns NAMESPACE DOMAIN ADDRESS TABLE   the DNS proxy of Istio's agent, with a name table from a file
//	reference configs TESTDATA FOLDER              the ProxyConfigs of Istio's own tests of bootstraps, as JSON
//	reference csr IDENTITY                         what Istio's registration authority says of a signing request
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
