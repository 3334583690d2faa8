//! Converts the agent's requests and responses to and from xDS messages.

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::{Any, ListValue, Struct, Value as ProtoValue, value::Kind};
use envoy_types::pb::google::rpc::Status as RpcStatus;
use prost::Message as _;
use serde_json::{Map, Value};
use workload_health::health_report::{APP_HEALTH_REPORT, HEALTH_INFORMATION, PROBE_TYPE};

use super::{Node, Request, Response};

/// Type URL of a stream's first request. The request names no resource, so a server has nothing to
/// send for it.
const CLUSTER_LOAD_ASSIGNMENT: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Status codes of `google.rpc.Code`.
const INVALID_ARGUMENT: i32 = 3;
const INTERNAL: i32 = 13;

pub(super) fn to_sotw(request: Request) -> DiscoveryRequest {
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

pub(super) fn to_delta(request: Request) -> DeltaDiscoveryRequest {
    let DiscoveryRequest { node, type_url, response_nonce, error_detail, .. } = to_sotw(request);
    DeltaDiscoveryRequest { node, type_url, response_nonce, error_detail, ..DeltaDiscoveryRequest::default() }
}

pub(super) fn from_sotw(message: DiscoveryResponse) -> Option<Response> {
    let DiscoveryResponse { version_info, resources, type_url, nonce, .. } = message;
    to_response(&type_url, version_info, nonce, resources)
}

pub(super) fn from_delta(message: DeltaDiscoveryResponse) -> Option<Response> {
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

/// Encodes the identity of a node, without the name of the program.
pub(super) fn encode_identity(node: Node) -> Vec<u8> {
    let node = to_node(node);
    let identity = core::Node { user_agent_name: String::new(), user_agent_version_type: None, ..node };
    identity.encode_to_vec()
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
