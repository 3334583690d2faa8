//! Converts the agent's requests and responses to and from xDS messages, in both protocol variants
//! (state of the world and incremental). This is the only module that uses Envoy's protobuf types;
//! the module `report` decides when to send what.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::{Any, ListValue, Struct, Value as ProtoValue, value::Kind};
use envoy_types::pb::google::rpc::Status as RpcStatus;
use pacing::RateLimiter;
use prost::Message as _;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use workload_health::health_report::{APP_HEALTH_REPORT, HEALTH_INFORMATION, PROBE_TYPE};

use super::connection::Connection;
use crate::args::Xds;

/// Type URL of a stream's first request. The request names no resource, so a server has nothing to
/// send for it.
pub const CLUSTER_LOAD_ASSIGNMENT: &str =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Size limit of a message from the server, in bytes.
const MESSAGE_LIMIT: usize = 1024 * 1024;
/// Number of messages from the server that may arrive at once.
const MESSAGE_BURST: u32 = 50;
/// One message per interval after a burst. An app-health server sends acknowledgements and probe
/// changes, a few per minute.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(100);
/// Status codes of `google.rpc.Code`.
const INVALID_ARGUMENT: i32 = 3;
const INTERNAL: i32 = 13;

/// The node that this agent identifies itself with.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Node ID in the form `sidecar~<ip>~<hostname>.<namespace>~<namespace>.svc.cluster.local`.
    pub id: String,
    /// Region, zone and sub-zone; an unknown one is empty.
    pub locality: Option<[String; 3]>,
    /// JSON object with Istio's metadata fields and those of app-health.
    pub metadata: Value,
}

/// A message from the agent to the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// The first request of a stream.
    First(Box<Node>),
    Report {
        /// Why the workload is unhealthy; `None` if it is healthy.
        error: Option<String>,
        /// Node ID and app-health report as JSON; `None` towards a plain server.
        extension: Option<Box<(String, Value)>>,
    },
    /// The response to a hello message (ACK or NACK).
    AckOrNack {
        /// Version in force.
        version: String,
        /// Nonce of the hello message.
        nonce: String,
        /// Why the hello message is rejected; `None` for an ACK.
        nack_reason: Option<String>,
    },
}

/// A message from the server that the agent handles.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// The hello message of an app-health server.
    Hello {
        version: String,
        nonce: String,
        /// The single resource as JSON; an error if it is not one `google.protobuf.Struct`.
        content: Result<Value, String>,
    },
    /// The server stored the report with this version, `<epoch>/<generation>`.
    Acknowledged(String),
    /// The stream has ended; this is the last response.
    Ended {
        /// True if the server rejected this client.
        rejected: bool,
        /// The server's status message, or the cause of a broken connection.
        why: String,
    },
}

/// Serves one stream on a connection until it ends: sends what arrives on `requests`, and passes
/// received messages to `responses`. When the last sender of `requests` is dropped, the client's
/// half of the stream is closed.
pub async fn run_stream(
    connection: Connection,
    variant: Xds,
    requests: mpsc::Receiver<Request>,
    responses: mpsc::Sender<Response>,
) {
    let Connection { origin, goes_away, requests: service, driver, .. } = connection;
    let client = AggregatedDiscoveryServiceClient::with_origin(service, origin)
        .max_decoding_message_size(MESSAGE_LIMIT);
    let requests = ReceiverStream::new(requests);
    let status = tokio::select! {
        status = async { match variant {
            Xds::Sotw => sotw(client, requests, &responses).await,
            Xds::Delta => delta(client, requests, &responses).await,
        }} => status,
        () = goes_away.notified() => Status::unavailable("the server closes the connection (GOAWAY)"),
    };
    drop(driver);
    let rejected =
        matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument);
    let why = workload_health::health_report::printable(&status_text(&status));
    // Sending fails only if the receiver has closed the stream.
    let _ = responses.send(Response::Ended { rejected, why }).await;
}

type Client = AggregatedDiscoveryServiceClient<super::connection::GrpcChannel>;

async fn sotw(
    mut client: Client,
    requests: ReceiverStream<Request>,
    responses: &mpsc::Sender<Response>,
) -> Status {
    // This call returns when the response headers arrive. That may never happen, because istiod
    // sends nothing on such a stream.
    let mut stream = match client.stream_aggregated_resources(requests.map(to_sotw)).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status,
    };
    let mut pace = Pace::new();
    loop {
        match stream.message().await {
            Ok(Some(message)) => forward(responses, from_sotw(message), &mut pace).await,
            Ok(None) => return Status::unavailable("the server ended the stream"),
            Err(status) => return status,
        }
    }
}

async fn delta(
    mut client: Client,
    requests: ReceiverStream<Request>,
    responses: &mpsc::Sender<Response>,
) -> Status {
    let mut stream = match client.delta_aggregated_resources(requests.map(to_delta)).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status,
    };
    let mut pace = Pace::new();
    loop {
        match stream.message().await {
            Ok(Some(message)) => forward(responses, from_delta(message), &mut pace).await,
            Ok(None) => return Status::unavailable("the server ended the stream"),
            Err(status) => return status,
        }
    }
}

/// Rate limit for messages from the server. Excess messages wait in the connection, so that no
/// server can cause unlimited probing, logging or CPU use.
struct Pace {
    limiter: RateLimiter,
    opened: Instant,
}

impl Pace {
    fn new() -> Self {
        Self { limiter: RateLimiter::new(MESSAGE_INTERVAL, MESSAGE_BURST), opened: Instant::now() }
    }

    /// Waits until one more message may be read.
    async fn wait(&mut self) {
        while let Err(ready) = self.limiter.take(self.opened.elapsed()) {
            sleep_until(self.opened + ready).await;
        }
    }
}

async fn forward(responses: &mpsc::Sender<Response>, response: Option<Response>, pace: &mut Pace) {
    pace.wait().await;
    if let Some(response) = response {
        // If the receiver is dropped, this task is aborted as well.
        let _ = responses.send(response).await;
    }
}

/// Returns the server's status message, or the root cause of a broken connection.
fn status_text(status: &Status) -> String {
    let mut cause = std::error::Error::source(status);
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    let code = status.code();
    match cause {
        Some(cause) => format!("{code:?}: {cause}"),
        None => format!("{code:?}: {}", status.message()),
    }
}

fn to_sotw(request: Request) -> DiscoveryRequest {
    match request {
        Request::First(node) => DiscoveryRequest {
            type_url: CLUSTER_LOAD_ASSIGNMENT.to_owned(),
            node: Some(to_node(*node)),
            ..DiscoveryRequest::default()
        },
        Request::Report { error, extension } => DiscoveryRequest {
            type_url: HEALTH_INFORMATION.to_owned(),
            node: extension.map(|extension| reporting_node(*extension)),
            error_detail: error.map(|message| status(INTERNAL, message)),
            ..DiscoveryRequest::default()
        },
        Request::AckOrNack { version, nonce, nack_reason } => DiscoveryRequest {
            type_url: PROBE_TYPE.to_owned(),
            version_info: version,
            response_nonce: nonce,
            error_detail: nack_reason.map(|message| status(INVALID_ARGUMENT, message)),
            ..DiscoveryRequest::default()
        },
    }
}

fn to_delta(request: Request) -> DeltaDiscoveryRequest {
    let DiscoveryRequest { node, type_url, response_nonce, error_detail, .. } = to_sotw(request);
    DeltaDiscoveryRequest { node, type_url, response_nonce, error_detail, ..DeltaDiscoveryRequest::default() }
}

fn from_sotw(message: DiscoveryResponse) -> Option<Response> {
    let DiscoveryResponse { version_info, resources, type_url, nonce, .. } = message;
    to_response(&type_url, version_info, nonce, resources)
}

fn from_delta(message: DeltaDiscoveryResponse) -> Option<Response> {
    let DeltaDiscoveryResponse { system_version_info, resources, type_url, nonce, .. } = message;
    let resources = resources.into_iter().filter_map(|resource| resource.resource).collect();
    to_response(&type_url, system_version_info, nonce, resources)
}

fn to_response(type_url: &str, version: String, nonce: String, resources: Vec<Any>) -> Option<Response> {
    match type_url {
        HEALTH_INFORMATION => Some(Response::Acknowledged(version)),
        PROBE_TYPE => Some(Response::Hello { version, nonce, content: content(&resources) }),
        _ => None,
    }
}

fn content(resources: &[Any]) -> Result<Value, String> {
    let [resource] = resources else {
        return Err(format!("hello: expected one resource, got {}", resources.len()));
    };
    let content = Struct::decode(resource.value.as_slice())
        .map_err(|error| format!("hello: not a google.protobuf.Struct: {error}"))?;
    Ok(from_struct(content))
}

fn status(code: i32, message: String) -> RpcStatus {
    RpcStatus { code, message, details: Vec::new() }
}

fn to_node(node: Node) -> core::Node {
    let Node { id, locality, metadata } = node;
    let locality = locality.map(|[region, zone, sub_zone]| core::Locality { region, zone, sub_zone });
    let version = env!("CARGO_PKG_VERSION").to_owned();
    core::Node {
        id,
        locality,
        metadata: Some(to_struct(metadata)),
        user_agent_name: "app-health-agent".to_owned(),
        user_agent_version_type: Some(core::node::UserAgentVersionType::UserAgentVersion(version)),
        ..core::Node::default()
    }
}

fn reporting_node((id, report): (String, Value)) -> core::Node {
    let metadata = Map::from_iter([(APP_HEALTH_REPORT.to_owned(), report)]);
    core::Node { id, metadata: Some(to_struct(Value::Object(metadata))), ..core::Node::default() }
}

fn to_struct(value: Value) -> Struct {
    let Value::Object(fields) = value else { return Struct::default() };
    Struct { fields: fields.into_iter().map(|(name, value)| (name, to_value(value))).collect() }
}

fn to_value(value: Value) -> ProtoValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(value),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(to_value).collect() })
        }
        Value::Object(_) => Kind::StructValue(to_struct(value)),
    };
    ProtoValue { kind: Some(kind) }
}

fn from_struct(content: Struct) -> Value {
    content.fields.into_iter().map(|(name, value)| (name, from_value(value))).collect()
}

fn from_value(value: ProtoValue) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => value.into(),
        Some(Kind::NumberValue(number)) => from_number(number),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(from_value).collect(),
        Some(Kind::StructValue(content)) => from_struct(content),
    }
}

/// Converts a protobuf number, which is always an `f64`; integers become JSON integers.
fn from_number(number: f64) -> Value {
    /// 2^53, the limit up to which an `f64` represents every integer.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= WHOLE {
        #[expect(clippy::cast_possible_truncation, reason = "the number is an integer and at most 2^53")]
        let number = number as i64;
        number.into()
    } else {
        number.into()
    }
}

#[cfg(test)]
mod tests;
