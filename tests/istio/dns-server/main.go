// The DNS proxy of Istio's agent alone, with a name table from a file. Usage:
// dns-server NAMESPACE DOMAIN ADDRESS TABLE
package main

import (
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"

	"istio.io/istio/pkg/dns/client"
	nds "istio.io/istio/pkg/dns/proto"
)

func main() {
	namespace, domain, address, file := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
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

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
