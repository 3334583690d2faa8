//! One ADS stream in plaintext, from the side of whoever dials.

use std::net::SocketAddr;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value as ProtoValue};
use futures_util::stream::unfold;
use serde_json::Value;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

/// Type URLs.
pub(super) const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(super) const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// Closed when it is dropped.
pub(super) struct Stream {
    requests: mpsc::UnboundedSender<DiscoveryRequest>,
    answers: Streaming<DiscoveryResponse>,
}

impl Stream {
    /// The first request goes out with the stream: a server may answer not before it.
    pub(super) async fn open(address: SocketAddr, first: DiscoveryRequest) -> Result<Self, Status> {
        let endpoint = format!("http://{address}");
        let client = AggregatedDiscoveryServiceClient::connect(endpoint).await;
        let mut client = client.map_err(|error| Status::unavailable(error.to_string()))?;
        let (requests, received) = mpsc::unbounded_channel();
        let _ = requests.send(first);
        let outgoing = unfold(received, |mut received: mpsc::UnboundedReceiver<_>| async move {
            received.recv().await.map(|request| (request, received))
        });
        let answers = client.stream_aggregated_resources(outgoing).await?.into_inner();
        Ok(Self { requests, answers })
    }

    pub(super) fn send(&self, request: DiscoveryRequest) {
        let _ = self.requests.send(request);
    }

    /// The next answer, or how it ended.
    pub(super) async fn next(&mut self) -> Result<DiscoveryResponse, Status> {
        self.answers.message().await?.ok_or_else(|| Status::ok("ended"))
    }
}

pub(super) fn request(type_url: &str, node: Option<Node>) -> DiscoveryRequest {
    DiscoveryRequest { type_url: type_url.to_owned(), node, ..DiscoveryRequest::default() }
}

pub(super) fn node(id: &str, metadata: &Value) -> Node {
    let Some(Kind::StructValue(metadata)) = proto(metadata).kind else { panic!("metadata is an object") };
    Node { id: id.to_owned(), metadata: Some(metadata), ..Node::default() }
}

fn proto(value: &Value) -> ProtoValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(bool) => Kind::BoolValue(*bool),
        Value::Number(number) => Kind::NumberValue(number.as_f64().expect("a small number")),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => Kind::ListValue(ListValue { values: items.iter().map(proto).collect() }),
        Value::Object(fields) => Kind::StructValue(Struct {
            fields: fields.iter().map(|(name, value)| (name.clone(), proto(value))).collect(),
        }),
    };
    ProtoValue { kind: Some(kind) }
}
