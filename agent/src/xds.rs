//! What is said to a discovery server and what it answers, to the messages of the wire and back, in both variants of the protocol. The
//! only file that names Envoy's protos. When to say what is `report`'s.

mod pace;

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::{Any, ListValue, Struct, Value as ProtoValue, value::Kind};
use envoy_types::pb::google::rpc::Status as RpcStatus;
use prost::Message as _;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use workload_health::health_report::{APP_HEALTH_REPORT, HEALTH_INFORMATION, PROBE_TYPE};

use crate::args::Xds;
use crate::report::connection::Connection;
use pace::Pace;

/// What the first request asks for; it names no resource, so nobody has work with it.
pub const CLUSTER_LOAD_ASSIGNMENT: &str =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// A message from the server may be so large, in bytes.
const MESSAGE_LIMIT: usize = 1024 * 1024;
/// Codes of `google.rpc`.
const INVALID_ARGUMENT: i32 = 3;
const INTERNAL: i32 = 13;

/// Who we are, to the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// `sidecar~<ip>~<hostname>.<namespace>~<namespace>.svc.cluster.local`
    pub id: String,
    /// Region, zone, sub-zone; empty where there is none.
    pub locality: Option<[String; 3]>,
    /// An object, Istio's names and ours.
    pub metadata: Value,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// The first one of a stream.
    First(Box<Node>),
    /// A report.
    Report {
        /// Absent: healthy.
        error: Option<String>,
        /// Ours, as JSON, towards our server: the node's id with it.
        ours: Option<Box<(String, Value)>>,
    },
    /// To a hello.
    Answer {
        /// In force.
        version: String,
        /// Of the hello.
        nonce: String,
        /// Why it is refused.
        refusal: Option<String>,
    },
}

/// What is received, as far as it concerns us.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// Our server's hello: the one resource, as JSON.
    Hello {
        /// Of the message.
        version: String,
        /// Of the message.
        nonce: String,
        /// `Err`: not one `google.protobuf.Struct`.
        content: Result<Value, String>,
    },
    /// A report is stored: `<epoch>/<generation>`.
    Acknowledged(String),
    /// The stream is over. Nothing follows.
    Ended {
        /// The server will not have us.
        refused: bool,
        /// Its words, or what broke.
        why: String,
    },
}

/// Speaks on a connection until the stream ends: what comes from `requests` goes out, `responses` gets what comes in. When the last
/// sender of `requests` is dropped, our half of the stream is at its end.
pub async fn speak(
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
        () = goes_away.notified() => Status::unavailable("the server goes away (GOAWAY)"),
    };
    drop(driver);
    let refused =
        matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument);
    let why = workload_health::health_report::printable(&words(&status));
    // Who is not there any more has closed the stream.
    let _ = responses.send(Response::Ended { refused, why }).await;
}

type Client = AggregatedDiscoveryServiceClient<crate::report::connection::Requests>;

async fn sotw(
    mut client: Client,
    requests: ReceiverStream<Request>,
    responses: &mpsc::Sender<Response>,
) -> Status {
    // Returns with the first byte of an answer, which may never come: an istiod has nothing to say.
    let mut stream = match client.stream_aggregated_resources(requests.map(to_sotw)).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status,
    };
    let mut pace = Pace::new();
    loop {
        match stream.message().await {
            Ok(Some(message)) => tell(responses, from_sotw(message), &mut pace).await,
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
            Ok(Some(message)) => tell(responses, from_delta(message), &mut pace).await,
            Ok(None) => return Status::unavailable("the server ended the stream"),
            Err(status) => return status,
        }
    }
}

async fn tell(responses: &mpsc::Sender<Response>, response: Option<Response>, pace: &mut Pace) {
    pace.pass().await;
    if let Some(response) = response {
        // Who is not there any more ends this task too.
        let _ = responses.send(response).await;
    }
}

/// The server's words, or the innermost cause of a broken connection.
fn words(status: &Status) -> String {
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
        Request::Report { error, ours } => DiscoveryRequest {
            type_url: HEALTH_INFORMATION.to_owned(),
            node: ours.map(|ours| reporting_node(*ours)),
            error_detail: error.map(|message| status(INTERNAL, message)),
            ..DiscoveryRequest::default()
        },
        Request::Answer { version, nonce, refusal } => DiscoveryRequest {
            type_url: PROBE_TYPE.to_owned(),
            version_info: version,
            response_nonce: nonce,
            error_detail: refusal.map(|message| status(INVALID_ARGUMENT, message)),
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
    from_wire(&type_url, version_info, nonce, resources)
}

fn from_delta(message: DeltaDiscoveryResponse) -> Option<Response> {
    let DeltaDiscoveryResponse { system_version_info, resources, type_url, nonce, .. } = message;
    let resources = resources.into_iter().filter_map(|resource| resource.resource).collect();
    from_wire(&type_url, system_version_info, nonce, resources)
}

fn from_wire(type_url: &str, version: String, nonce: String, resources: Vec<Any>) -> Option<Response> {
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

/// The wire knows `f64` alone; a whole number shows as one.
fn from_number(number: f64) -> Value {
    /// 2^53: up to here an `f64` holds every whole number.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= WHOLE {
        #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
        let number = number as i64;
        number.into()
    } else {
        number.into()
    }
}

#[cfg(test)]
mod tests;
