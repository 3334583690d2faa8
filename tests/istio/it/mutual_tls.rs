//! Mutual TLS between Envoys as istiod configures it by default; their certificates come from the agent.

use std::net::SocketAddr;

use kit::vm::application::READY_PATH;
use kit::vm::documents::{GROUP, NAMESPACE, PORT};
use kit::{caller, net, wait};
use serde_json::{Value, json};

use crate::proxied_machine::ProxiedMachine;
use istio_tests::istiod::Istiod;

pub(crate) const HOST: &str = "mutual.shop.example.com";
/// The port of the service, and that on which the machine's Envoy accepts mutual TLS.
pub(crate) const SERVICE_PORT: u16 = 9080;
pub(crate) const TLS_PORT: u16 = 9443;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn envoys_use_the_agents_certificates_for_mutual_tls() {
    let istiod = Istiod::start_with_auto_mtls("istio-mtls").await;
    let outbound = SocketAddr::new(net::loopback(), SERVICE_PORT);
    for object in [service(), strict()] {
        istiod.cluster.apply(&object.to_string());
    }
    let machine = ProxiedMachine::start(&istiod, "istio-mtls-machine", "sotw").await;
    let inbound = SocketAddr::new(machine.ip(), TLS_PORT);
    istiod.cluster.apply(&sidecar(outbound, inbound).to_string());

    let request = format!("GET {READY_PATH} HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    let what = || format!("a response over mutual TLS:\n{}\n{}", machine.log(), istiod.log());
    wait::until_or(what, async || caller::send(outbound, request.as_bytes()).await.status == 200).await;
    // Only the outbound listener can have encrypted it: the inbound one refuses plaintext.
    assert_eq!(caller::send(inbound, request.as_bytes()).await.status, 0);
    let view = machine.view().await;
    for found in view["types"].as_array().expect("a list") {
        assert_eq!(found["nacks"], 0, "{view:#}\n{}", machine.log());
    }
}

pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": "mutual", "namespace": NAMESPACE},
        "spec": {
            "hosts": [HOST],
            "location": "MESH_INTERNAL",
            "resolution": "STATIC",
            // The group has another port of the name `http`.
            "ports": [
                {"number": SERVICE_PORT, "name": "http-mutual", "protocol": "HTTP", "targetPort": TLS_PORT},
            ],
            "workloadSelector": {"labels": {"app": GROUP}},
        },
    })
}

pub(crate) fn strict() -> Value {
    json!({
        "apiVersion": "security.istio.io/v1",
        "kind": "PeerAuthentication",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"mtls": {"mode": "STRICT"}},
    })
}

/// The listeners of the machine's Envoy: one for requests to the service, and one that terminates TLS in
/// front of the application.
pub(crate) fn sidecar(outbound: SocketAddr, inbound: SocketAddr) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "Sidecar",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {
            "egress": [{
                "port": {"number": outbound.port(), "protocol": "HTTP", "name": "http"},
                "bind": outbound.ip().to_string(),
                "captureMode": "NONE",
                "hosts": ["./*"],
            }],
            "ingress": [{
                "port": {"number": inbound.port(), "protocol": "HTTP", "name": "http-tls"},
                "bind": inbound.ip().to_string(),
                "captureMode": "NONE",
                "defaultEndpoint": format!("0.0.0.0:{PORT}"),
            }],
        },
    })
}
