package main

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	grpcprobe "k8s.io/kubernetes/pkg/probe/grpc"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
)

// Prober holds what kubelet's prober holds (pkg/kubelet/prober/prober.go, newProber), exec left out.
type Prober struct {
	http httpprobe.Prober
	tcp  tcpprobe.Prober
	grpc grpcprobe.Prober
}

// NewProber makes the one prober of all Pods.
func NewProber() *Prober {
	const followNonLocalRedirects = false
	return &Prober{
		http: httpprobe.New(followNonLocalRedirects),
		tcp:  tcpprobe.New(),
		grpc: grpcprobe.New(),
	}
}

// Probe is kubelet's runProbe for a container that names no ports: one probe. Kubelet itself probes again, up to
// three times in all, while there is an error.
func (prober *Prober) Probe(handler v1.ProbeHandler, podIP string, timeout time.Duration) (probe.Result, string, error) {
	container := &v1.Container{}
	switch {
	case handler.HTTPGet != nil:
		request, err := httpprobe.NewRequestForHTTPGetAction(handler.HTTPGet, container, podIP, "probe")
		if err != nil {
			return probe.Unknown, "", err
		}
		return prober.http.Probe(request, timeout)
	case handler.TCPSocket != nil:
		port, err := probe.ResolveContainerPort(handler.TCPSocket.Port, container)
		if err != nil {
			return probe.Unknown, "", err
		}
		host := handler.TCPSocket.Host
		if host == "" {
			host = podIP
		}
		return prober.tcp.Probe(host, port, timeout)
	default:
		service := ""
		if handler.GRPC.Service != nil {
			service = *handler.GRPC.Service
		}
		return prober.grpc.Probe(podIP, service, int(handler.GRPC.Port), timeout)
	}
}
