//! Tests discovery as a process with the incremental (delta) protocol.

use xds::Variant;
use xds::type_url::LISTENER;

use crate::discovery_support::{
    CLIENT, Discovery, EDS, GATEWAY, MACHINE, PAY, PAYMENTS, Peer, has_machine, health, request,
};

/// Opens a stream with a first request.
async fn open(
    discovery: &Discovery,
    uri: &str,
    type_url: &str,
    names: &[&str],
    metadata: &[(&str, &str)],
) -> Peer {
    let (tls, first) = (discovery.identity(uri), request(type_url, names, metadata));
    let opened = Peer::open_from([127, 0, 0, 1], discovery.secure, tls, Variant::Delta, first).await;
    opened.expect("a stream")
}

#[tokio::test]
async fn a_delta_report_is_processed_without_a_response() {
    let discovery = Discovery::start("delta", &[]);
    let mut client = open(&discovery, GATEWAY, EDS, &[PAY], &CLIENT).await;
    client.assignment(|bytes| !has_machine(bytes)).await;
    // The request of its Envoy comes first.
    let mut reporter = open(&discovery, PAYMENTS, LISTENER, &[], &MACHINE).await;
    assert!(reporter.next().await.expect("an empty set of listeners").resources.is_empty());
    for text in ["", "HTTP status 503", "", "refused"] {
        // As Istio's agent sends it: a further type without names.
        reporter.send(health(text)).await;
        client.assignment(|bytes| has_machine(bytes) == text.is_empty()).await;
    }
    assert!(reporter.is_quiet().await, "neither a probe configuration nor an acknowledgement is sent");
    let view = discovery.page("/debug/workloads");
    assert!(view.contains("\"kind\":\"istio\"") && view.contains("\"message\":\"refused\""), "{view}");
}
