//! Decodes `envoy.config.core.v3.Node` to [`Node`]: the metadata keys of Istio, and those of
//! app-health.

use std::collections::BTreeMap;

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::Locality;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value as ProtoValue};
use prost::Message;
use serde_json::{Map, Number, Value};
use workload_health::health_report as words;

use super::{METADATA_LIMIT, Malformed};
use crate::entries::Node;
use words::{HealthReport, printable};

/// `user_agent_name` of the agent.
const AGENT: &str = "app-health-agent";

/// The fields of the node that are needed. Envoy also lists hundreds of extensions.
#[derive(Clone, PartialEq, Message)]
struct NodeMessage {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(bytes = "bytes", tag = "3")]
    metadata: Bytes,
    #[prost(message, optional, tag = "4")]
    locality: Option<Locality>,
    #[prost(string, tag = "6")]
    user_agent_name: String,
    #[prost(string, tag = "7")]
    user_agent_version: String,
}

/// Decodes the node, and the health report that its metadata may contain.
pub(super) fn decode(bytes: Bytes) -> Result<(Option<Node>, Option<HealthReport>), Malformed> {
    let broken = |error: prost::DecodeError| Malformed::Message(printable(&error.to_string()));
    let message = NodeMessage::decode(bytes).map_err(broken)?;
    if message.metadata.len() > METADATA_LIMIT {
        return Err(Malformed::TooLarge("node.metadata", "64 KiB"));
    }
    let metadata = object(Struct::decode(message.metadata).map_err(broken)?);
    let report = metadata.get(words::APP_HEALTH_REPORT).map(HealthReport::parse).transpose();
    let report = report.map_err(|text| Malformed::Metadata(printable(&text)))?;
    let text = |name: &str| -> Option<String> {
        metadata.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let is_agent = message.user_agent_name == AGENT;
    let node = Node {
        id: printable(&message.id),
        namespace: text(words::NAMESPACE),
        service_account: text(words::SERVICE_ACCOUNT),
        instance_ips: metadata.get(words::INSTANCE_IPS).map(addresses).unwrap_or_default(),
        group: text(words::AUTO_REGISTER_GROUP),
        workload_entry: text(words::WORKLOAD_ENTRY),
        network: text(words::NETWORK),
        labels: metadata.get(words::LABELS).map(labels).unwrap_or_default(),
        locality: message.locality.as_ref().and_then(locality),
        readiness_probe: metadata
            .get(words::PROXY_CONFIG)
            .and_then(|config| config.get(words::READINESS_PROBE))
            .is_some_and(|probe| !probe.is_null()),
        proxy_config: metadata.get(words::PROXY_CONFIG).is_some_and(Value::is_object),
        app_health: metadata
            .get(words::APP_HEALTH)
            .and_then(|ours| ours.get("version"))
            .and_then(Value::as_f64)
            .is_some_and(|version| version >= 1.0),
        agent_version: is_agent.then(|| printable(&message.user_agent_version)),
    };
    Ok((Some(node), report))
}

/// Parses a list, or the comma-separated string that Istio's agent sends.
fn addresses(value: &Value) -> Vec<String> {
    let text: Vec<&str> = match value {
        Value::String(text) => text.split(',').collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    text.into_iter().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

fn labels(value: &Value) -> BTreeMap<String, String> {
    let labels = value.as_object().into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// Formats `region/zone/subzone` without empty parts at the end.
fn locality(locality: &Locality) -> Option<String> {
    let parts = [locality.region.as_str(), &locality.zone, &locality.sub_zone];
    let text = parts.join("/");
    let text = text.trim_end_matches('/');
    (!text.is_empty()).then(|| printable(text))
}

fn object(message: Struct) -> Map<String, Value> {
    message.fields.into_iter().map(|(name, value)| (name, json(value))).collect()
}

fn json(value: ProtoValue) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::NumberValue(number)) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::BoolValue(yes)) => Value::Bool(yes),
        Some(Kind::StructValue(fields)) => Value::Object(object(fields)),
        Some(Kind::ListValue(list)) => Value::Array(list.values.into_iter().map(json).collect()),
    }
}
