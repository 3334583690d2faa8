package main

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	grpcprobe "k8s.io/kubernetes/pkg/probe/grpc"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
)

// Prober has the same probers as the kubelet's (pkg/kubelet/prober/prober.go, newProber), except
// exec.
type Prober struct {
	http httpprobe.Prober
	tcp  tcpprobe.Prober
	grpc grpcprobe.Prober
}

// NewProber returns a prober with the kubelet's settings.
func NewProber() *Prober {
	const followNonLocalRedirects = false
	return &Prober{
		http: httpprobe.New(followNonLocalRedirects),
		tcp:  tcpprobe.New(),
		grpc: grpcprobe.New(),
	}
}

// Probe runs one probe like the kubelet's runProbe, for a container without named ports. The
// kubelet itself runs a probe up to three times while it returns an error.
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
