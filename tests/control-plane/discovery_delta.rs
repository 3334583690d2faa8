//! Tests discovery as a process with the incremental (delta) protocol.

use std::collections::HashMap;

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use kit::wait;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Streaming;

use crate::discovery_support::{
    CLIENT, Discovery, EDS, GATEWAY, HEALTH, MACHINE, PAY, PAYMENTS, SHORT, connect, has_machine, health,
    request,
};

/// A delta ADS stream.
struct Peer {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    answers: Streaming<DeltaDiscoveryResponse>,
}

/// Returns the same request for the delta protocol.
fn delta(type_url: &str, names: &[&str], metadata: &[(&str, &str)]) -> DeltaDiscoveryRequest {
    let request = request(type_url, names, metadata);
    DeltaDiscoveryRequest {
        node: request.node,
        type_url: request.type_url,
        resource_names_subscribe: request.resource_names,
        initial_resource_versions: HashMap::new(),
        ..DeltaDiscoveryRequest::default()
    }
}

impl Peer {
    async fn open(discovery: &Discovery, uri: &str, first: DeltaDiscoveryRequest) -> Self {
        let channel =
            connect([127, 0, 0, 1], discovery.secure, discovery.identity(uri)).await.expect("a server");
        let (requests, mut receiver) = mpsc::channel(16);
        requests.send(first).await.expect("room");
        let outgoing = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
        let mut client = AggregatedDiscoveryServiceClient::new(channel);
        let answers = client.delta_aggregated_resources(outgoing).await.expect("a stream").into_inner();
        Self { requests, answers }
    }

    /// Sends a health report as Istio's agent does: a further type without names.
    async fn report(&self, text: &str) {
        let error_detail = health(text).error_detail;
        let report = DeltaDiscoveryRequest { error_detail, ..delta(HEALTH, &[], &[]) };
        self.requests.send(report).await.expect("the stream is open");
    }

    /// Reads and acknowledges responses until the assignment is as wanted.
    async fn assignment(&mut self, wanted: impl Fn(&[u8]) -> bool) {
        loop {
            let answer =
                timeout(wait::timeout(), self.answers.message()).await.expect("in time").expect("a stream");
            let answer = answer.expect("the stream is open");
            let response_nonce = answer.nonce.clone();
            let taken = DeltaDiscoveryRequest { response_nonce, ..delta(EDS, &[], &[]) };
            self.requests.send(taken).await.expect("the stream is open");
            let any = answer.resources.first().and_then(|resource| resource.resource.as_ref());
            if wanted(&any.expect("an assignment").value) {
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_delta_report_is_processed_without_a_response() {
    let discovery = Discovery::start("delta", &[]);
    let mut client = Peer::open(&discovery, GATEWAY, delta(EDS, &[PAY], &CLIENT)).await;
    client.assignment(|bytes| !has_machine(bytes)).await;
    // The request of its Envoy comes first.
    let listeners = "type.googleapis.com/envoy.config.listener.v3.Listener";
    let mut reporter = Peer::open(&discovery, PAYMENTS, delta(listeners, &[], &MACHINE)).await;
    let answer =
        timeout(wait::timeout(), reporter.answers.message()).await.expect("in time").expect("a stream");
    assert!(answer.expect("an empty set of listeners").resources.is_empty());
    for text in ["", "HTTP status 503", "", "refused"] {
        reporter.report(text).await;
        client.assignment(|bytes| has_machine(bytes) == text.is_empty()).await;
    }
    assert!(
        timeout(SHORT, reporter.answers.message()).await.is_err(),
        "neither a probe configuration nor an acknowledgement is sent"
    );
    let view = discovery.page("/debug/workloads");
    assert!(view.contains("\"kind\":\"istio\"") && view.contains("\"message\":\"refused\""), "{view}");
}
