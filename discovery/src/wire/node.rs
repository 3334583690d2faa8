//! Decodes `envoy.config.core.v3.Node` to [`Node`]: the metadata keys of Istio, and those of
//! app-health.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;
use workload_health::health_report as words;
use xds::json::decode_struct;

use super::{METADATA_LIMIT, Malformed};
use crate::entries::Node;
use words::HealthReport;
use workload_health::text::printable;

/// `user_agent_name` of the agent.
const AGENT: &str = "app-health-agent";

/// Decodes the node, and the health report that its metadata may contain.
pub(super) fn decode(bytes: &Bytes) -> Result<(Option<Node>, Option<HealthReport>), Malformed> {
    let xds::Node { id, locality, metadata, program, version } =
        xds::Node::parse(bytes, |metadata| match metadata.len() > METADATA_LIMIT {
            true => Err(Malformed::TooLarge("node.metadata", "64 KiB")),
            false => Ok(decode_struct(metadata)?),
        })?;
    let report = metadata.get(words::APP_HEALTH_REPORT).map(HealthReport::parse).transpose();
    let report = report.map_err(|text| Malformed::Metadata(printable(&text)))?;
    let text = |name: &str| -> Option<String> {
        metadata.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let node = Node {
        id: printable(&id),
        namespace: text(words::NAMESPACE),
        service_account: text(words::SERVICE_ACCOUNT),
        instance_ips: metadata.get(words::INSTANCE_IPS).map(addresses).unwrap_or_default(),
        group: text(words::AUTO_REGISTER_GROUP),
        workload_entry: text(words::WORKLOAD_ENTRY),
        network: text(words::NETWORK),
        labels: metadata.get(words::LABELS).map(labels).unwrap_or_default(),
        locality: locality.and_then(|parts| joined(&parts)),
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
        agent_version: (program == AGENT).then(|| printable(&version)),
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
fn joined(parts: &[String; 3]) -> Option<String> {
    let text = parts.join("/");
    let text = text.trim_end_matches('/');
    (!text.is_empty()).then(|| printable(text))
}
