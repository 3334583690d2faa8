//! Where Envoy sends traces, statistics and access logs.

use serde_json::{Value, json};

use super::{Unrendered, tls};
use crate::node::{Node, Sources};
use crate::proxy_config::ProxyConfig;

/// What the configuration calls the services that Envoy sends metrics and access logs to, and a template.
const SERVICES: [(&str, &str); 2] =
    [("envoyMetricsService", "envoy_metrics_service"), ("envoyAccessLogService", "envoy_accesslog_service")];

pub(super) fn set(
    sources: &Sources,
    config: &ProxyConfig,
    node: &Node,
    set: &mut impl FnMut(&str, Value),
) -> Result<(), Unrendered> {
    let tracing = config.get("tracing");
    let tracer = |name: &str| tracing.and_then(|tracing| tracing.get(name));
    for (name, unsupported) in [("stackdriver", "tracing.stackdriver"), ("lightstep", "tracing.lightstep")] {
        if tracer(name).is_some() {
            return Err(Unrendered::Unsupported(unsupported));
        }
    }
    for (name, field, value) in [
        ("pilot_grpc_address", "discoveryAddress", config.text("discoveryAddress")),
        ("statsd", "statsdUdpAddress", config.text("statsdUdpAddress")),
        ("zipkin", "tracing.zipkin.address", address_of(tracer("zipkin"))),
        ("datadog", "tracing.datadog.address", address_of(tracer("datadog"))),
    ] {
        if !value.is_empty() {
            set(name, socket_address(sources, field, value)?.into());
        }
    }
    if let Some(settings) = tracer("tlsSettings") {
        let socket = tls::transport_socket(settings, "tracer", node, false).unwrap_or_default();
        set("tracing_tls", socket.into());
    }
    for (field, name) in SERVICES {
        let service = config.get(field);
        let address = address_of(service);
        if address.is_empty() {
            continue;
        }
        set(&format!("{name}_address"), socket_address(sources, field, address)?.into());
        if let Some(settings) = service.and_then(|service| service.get("tlsSettings")) {
            let socket = tls::transport_socket(settings, name, node, true).unwrap_or_default();
            set(&format!("{name}_tls"), socket.into());
        }
        if let Some(settings) = service.and_then(|service| service.get("tcpKeepalive")) {
            set(&format!("{name}_tcp_keepalive"), keepalive(settings).into());
        }
    }
    let compresses = config.get("statsCompression").and_then(Value::as_bool).unwrap_or(true);
    set("envoy_metrics_stats_compression", compresses.into());
    Ok(())
}

fn address_of(message: Option<&Value>) -> &str {
    message.and_then(|message| message.get("address")).and_then(Value::as_str).unwrap_or_default()
}

/// The fields of Envoy's `SocketAddress`. The name `$(HOST_IP)` is the address of the node.
fn socket_address(sources: &Sources, field: &'static str, value: &str) -> Result<String, Unrendered> {
    let (host, port) = split(value).ok_or_else(|| Unrendered::Address { field, value: value.to_owned() })?;
    let host = match (host, sources.variable("HOST_IP")) {
        ("$(HOST_IP)", Some(ip)) if !ip.is_empty() => ip,
        (host, _) => host,
    };
    Ok(format!("{{\"address\": \"{host}\", \"port_value\": {port}}}"))
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
