//! Where Envoy sends traces, statistics and access logs.

use serde_json::{Value, json};

use super::{Unrendered, tls};
use crate::node::{Node, Sources};
use crate::proxy_config::ProxyConfig;

pub(super) fn set(
    sources: &Sources,
    config: &ProxyConfig,
    node: &Node,
    set: &mut impl FnMut(&str, Value),
) -> Result<(), Unrendered> {
    let mut address = |name: &str, field: &'static str, value: &str| -> Result<(), Unrendered> {
        if !value.is_empty() {
            let (host, port) =
                split(value).ok_or_else(|| Unrendered::Address { field, value: value.to_owned() })?;
            let host = match (host, sources.variable("HOST_IP")) {
                ("$(HOST_IP)", Some(ip)) if !ip.is_empty() => ip,
                (host, _) => host,
            };
            set(name, format!("{{\"address\": \"{host}\", \"port_value\": {port}}}").into());
        }
        Ok(())
    };
    address("pilot_grpc_address", "discoveryAddress", config.text("discoveryAddress"))?;
    address("statsd", "statsdUdpAddress", config.text("statsdUdpAddress"))?;
    let tracing = config.get("tracing");
    let tracer = |name: &str| tracing.and_then(|tracing| tracing.get(name));
    let text = |message: &Value, field: &str| -> String {
        message.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    if tracer("stackdriver").is_some() {
        return Err(Unrendered::Unsupported("tracing.stackdriver"));
    }
    if tracer("lightstep").is_some() {
        return Err(Unrendered::Unsupported("tracing.lightstep"));
    }
    for name in ["zipkin", "datadog"] {
        if let Some(tracer) = tracer(name) {
            address(name, "tracing", &text(tracer, "address"))?;
        }
    }
    for (name, field) in [
        ("envoy_metrics_service", "envoyMetricsService"),
        ("envoy_accesslog_service", "envoyAccessLogService"),
    ] {
        let Some(service) = config.get(field).filter(|service| !text(service, "address").is_empty()) else {
            continue;
        };
        address(&format!("{name}_address"), field, &text(service, "address"))?;
    }
    if let Some(settings) = tracer("tlsSettings") {
        let socket = tls::transport_socket(settings, "tracer", node, false).unwrap_or_default();
        set("tracing_tls", socket.into());
    }
    for (name, field) in [
        ("envoy_metrics_service", "envoyMetricsService"),
        ("envoy_accesslog_service", "envoyAccessLogService"),
    ] {
        let Some(service) = config.get(field).filter(|service| !text(service, "address").is_empty()) else {
            continue;
        };
        if let Some(settings) = service.get("tlsSettings") {
            let socket = tls::transport_socket(settings, name, node, true).unwrap_or_default();
            set(&format!("{name}_tls"), socket.into());
        }
        if let Some(keepalive) = service.get("tcpKeepalive") {
            set(&format!("{name}_tcp_keepalive"), self::keepalive(keepalive).into());
        }
    }
    let compresses = config.get("statsCompression").and_then(Value::as_bool).unwrap_or(true);
    set("envoy_metrics_stats_compression", compresses.into());
    Ok(())
}

/// Splits `HOST:PORT` and `[HOST]:PORT` as Go's `net.SplitHostPort`.
fn split(address: &str) -> Option<(&str, &str)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    (!host.contains(['[', ']']) && !port.contains(['[', ']'])).then_some((host, port))
}

fn keepalive(settings: &Value) -> String {
    let seconds = |field: &str| {
        let text = settings.get(field)?.as_str()?.trim_end_matches('s');
        text.split('.').next()?.parse::<u32>().ok().filter(|seconds| *seconds > 0)
    };
    let mut keepalive = json!({});
    if let Some(probes) = settings.get("probes") {
        keepalive["keepalive_probes"] = json!({"value": probes});
    }
    for (name, field) in [("keepalive_time", "time"), ("keepalive_interval", "interval")] {
        if let Some(seconds) = seconds(field) {
            keepalive[name] = json!({"value": seconds});
        }
    }
    json!({"tcp_keepalive": keepalive}).to_string()
}
