//! Which of its statistics Envoy keeps, with which tags, and how often it flushes them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::go;
use crate::node::{Node, without_duplicates};
use crate::proto::float;
use crate::proxy_config::ProxyConfig;

/// What the agent itself needs for readiness.
const PREFIXES: &[&str] = &["cluster_manager", "listener_manager", "server", "cluster.xds-grpc", "wasm"];
const SUFFIXES: &[&str] = &["rbac.allowed", "rbac.denied", "shadow_allowed", "shadow_denied"];
/// What a drain that waits for connections needs.
const ACTIVE: &str = "downstream_cx_active";
const REGEXPS: &[&str] = &[r"vhost\..*\.route\..*"];
const FLUSH: Duration = Duration::from_secs(5);

pub(super) fn set(
    config: &ProxyConfig,
    node: &Node,
    addresses: &[String],
    set: &mut impl FnMut(&str, Value),
) {
    let annotation =
        |name: &str| node.annotations.get(&format!("sidecar.istio.io/{name}")).map(String::as_str);
    let mut suffixes = SUFFIXES.to_vec();
    if node.text("EXIT_ON_ZERO_ACTIVE_CONNECTIONS") == "true" {
        suffixes.push(ACTIVE);
    }
    for (name, field, required, annotated) in [
        ("inclusionPrefix", "inclusionPrefixes", PREFIXES, "statsInclusionPrefixes"),
        ("inclusionSuffix", "inclusionSuffixes", &suffixes, "statsInclusionSuffixes"),
        ("inclusionRegexps", "inclusionRegexps", REGEXPS, "statsInclusionRegexps"),
    ] {
        let chosen = match annotation(annotated) {
            Some(list) if !list.is_empty() => list.split(',').map(str::to_owned).collect(),
            _ => texts(config.get("proxyStatsMatcher").and_then(|matcher| matcher.get(field))),
        };
        let all = chosen.into_iter().chain(required.iter().map(|text| (*text).to_owned()));
        let addresses = without_duplicates(addresses);
        let with_addresses = all.flat_map(|pattern| match pattern.contains("{pod_ip}") {
            true => addresses.iter().map(|address| pattern.replace("{pod_ip}", address)).collect(),
            false => vec![pattern],
        });
        set(name, with_addresses.collect::<Vec<_>>().into());
    }
    let mut tags = texts(config.get("extraStatTags"));
    tags.extend(annotation("extraStatTags").unwrap_or_default().split(',').map(str::to_owned));
    tags.retain(|tag| !tag.is_empty());
    if !tags.is_empty() {
        set("extraStatTags", without_duplicates(&tags).into());
    }
    set("histogram_buckets", annotation("statsHistogramBuckets").map_or_else(Vec::new, buckets).into());
    let flush = annotation("statsFlushInterval").and_then(go::parse_duration);
    if let Some(interval) = flush.filter(|interval| !interval.is_zero()) {
        set("stats_flush_interval", go::duration_string(interval).into());
    }
    let eviction = annotation("statsEvictionInterval").and_then(go::parse_duration);
    // Envoy evicts when it flushes.
    let is_multiple =
        |interval: &Duration| interval.as_nanos().checked_rem(flush.unwrap_or(FLUSH).as_nanos()) == Some(0);
    if let Some(interval) = eviction.filter(is_multiple) {
        set("stats_eviction_interval", format!("{}s", interval.as_secs()).into());
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Reads `{"prefix": [1, 5]}`. Istio's agent ignores an annotation that is something else.
fn buckets(text: &str) -> Vec<Value> {
    let Ok(map) = serde_json::from_str::<Map<String, Value>>(text) else { return Vec::new() };
    let bucket = |(prefix, numbers): (&String, &Value)| {
        let numbers = numbers.as_array()?.iter().map(|number| number.as_f64().map(float));
        let numbers = numbers.collect::<Option<Vec<_>>>()?;
        Some((prefix.clone(), json!({"match": {"prefix": prefix}, "buckets": numbers})))
    };
    let Some(mut buckets) = map.iter().map(bucket).collect::<Option<Vec<_>>>() else { return Vec::new() };
    buckets.sort_by(|(one, _), (other, _)| one.cmp(other));
    buckets.into_iter().map(|(_, bucket)| bucket).collect()
}
