//! Envoy's command line, as Istio's agent writes it.

use std::net::IpAddr;
use std::time::Duration;

use crate::command::ProxyCommand;
use crate::node::Node;
use crate::proxy_config::ProxyConfig;

/// Returns Envoy's flags except `-c FILE`. `addresses` are those of the Pod, and `bootstrap_override` is a
/// JSON document that Envoy merges into its bootstrap.
pub fn envoy_flags(
    command: &ProxyCommand,
    config: &ProxyConfig,
    node: &Node,
    addresses: &[String],
    bootstrap_override: Option<&str>,
) -> Vec<String> {
    let drain = config.duration("drainDuration").unwrap_or_default().as_secs();
    let flush = config.duration("fileFlushInterval").unwrap_or(Duration::from_secs(1)).as_millis();
    let is_v6 = |address: &String| address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
    // Without any address too, as Istio's agent.
    let version = if addresses.iter().all(is_v6) { "v6" } else { "v4" };
    let mut flags: Vec<String> = Vec::new();
    let mut add = |flag: &str, value: &str| flags.extend([flag.to_owned(), value.to_owned()]);
    add("--drain-time-s", &drain.to_string());
    add("--drain-strategy", "immediate");
    add("--local-address-ip-version", version);
    add("--file-flush-interval-msec", &flush.to_string());
    let size = config.get("fileFlushMinSizeKb").and_then(serde_json::Value::as_i64).unwrap_or_default();
    if size > 0 {
        add("--file-flush-min-size-kb", &size.to_string());
    }
    let (level, components) = levels(&command.envoy_log_level);
    if !level.is_empty() {
        add("-l", level);
    }
    match (components.is_empty(), command.envoy_component_log_level.as_str()) {
        (false, _) => add("--component-log-level", &components.join(",")),
        (true, "") => {}
        (true, levels) => add("--component-log-level", levels),
    }
    if let Some(document) = bootstrap_override {
        add("--config-yaml", document);
    }
    if let Some(workers) = config.concurrency().filter(|workers| *workers > 0) {
        add("--concurrency", &workers.to_string());
    }
    flags.extend(["--disable-hot-restart", "--allow-unknown-static-fields"].map(str::to_owned));
    if node.text("ENVOY_SKIP_DEPRECATED_LOGS") == "true" {
        flags.push("--skip-deprecated-logs".to_owned());
    }
    flags
}

/// Splits `warning,misc:error` into the level and those of components. What has several colons is ignored.
fn levels(text: &str) -> (&str, Vec<&str>) {
    let (mut level, mut components) = ("", Vec::new());
    for part in text.split(',') {
        match part.matches(':').count() {
            0 => level = part,
            1 => components.push(part),
            _ => {}
        }
    }
    (level, components)
}

#[cfg(test)]
mod tests;
