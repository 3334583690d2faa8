//! Generates probers in the format of Kubernetes.

use probe::plugin_config::PluginConfig;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::case::Probe;

const PARTS: &[&str] = &[
    "/",
    "/ready",
    "healthz",
    "/a b",
    "/é",
    "/%2F",
    "/%zz",
    "%",
    "?",
    "?x=1",
    "&y=%20",
    "+",
    "#top",
    "//",
    "/..",
    "/.",
    ";v=1",
    ":",
    "@",
    "=",
    "\\",
    "\"",
    "<>",
    "{}",
    "|",
    "^",
    "`",
    "'",
    "~",
    "!$()*,[]",
    "/\u{1F600}",
    "\u{ff}",
    "%C3%A9",
];
const NAMES: &[&str] = &[
    "Accept",
    "Accept-Encoding",
    "Authorization",
    "Cookie",
    "Content-Type",
    "Content-Length",
    "Host",
    "If-None-Match",
    "Keep-Alive",
    "Origin",
    "Range",
    "Referer",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "User-Agent",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "X-Forwarded-Host",
    "X-Request-Id",
    "X-Real-Ip",
    "X-Custom",
    "x-lower",
    "X-UPPER",
    "x-1a-b2",
    "Expect",
    "Connection",
    "Upgrade",
    "Traceparent",
    "Date",
    "Forwarded",
    "Max-Forwards",
];
const VALUES: &[&str] = &[
    "",
    "a",
    "1",
    "close",
    "keep-alive",
    "a, b",
    "text/html;q=0.5",
    "Basic YTpi",
    "  padded  ",
    "100-continue",
    "gzip",
    "shop.example.com",
    "shop.example.com:8080",
    "10.0.0.1",
    "[::1]:80",
    "LOCALHOST",
    "trailers",
    "chunked",
    "é",
    "\"q\"",
    "https",
    "websocket",
    "Upgrade",
    "a\tb",
    "bytes=0-1",
];

/// Generates an `httpGet` that both the prober table and kubelet's request builder accept.
pub(super) fn http_get(scheme: &'static str) -> impl Strategy<Value = Probe> {
    let path = prop_oneof![
        3 => Just("/ready".to_owned()),
        2 => prop::collection::vec(select(PARTS), 0..5).prop_map(|parts| parts.concat()),
        1 => "[ -~]{0,12}",
    ];
    let header =
        (select(NAMES), prop_oneof![6 => select(VALUES).prop_map(str::to_owned), 1 => "[ -~]{0,12}"])
            .prop_map(|(name, value)| json!({"name": name, "value": value}));
    let headers = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(header, 0..4)];
    (path, headers)
        .prop_map(move |(path, headers)| json!({"path": path, "scheme": scheme, "httpHeaders": headers}))
        .prop_filter("the prober table rejects it", |get| is_accepted("httpGet", get))
        .prop_map(|get| Probe { http_get: Some(get), tcp_socket: None, grpc: None, timeout_seconds: 1 })
}

pub(super) fn tcp_socket() -> impl Strategy<Value = Probe> {
    Just(Probe { http_get: None, tcp_socket: Some(json!({})), grpc: None, timeout_seconds: 1 })
}

pub(super) fn grpc() -> impl Strategy<Value = Probe> {
    let service = prop_oneof![
        3 => Just(Value::Null),
        1 => select(&["", "shop.v1.Shop", "liveness", "é"][..]).prop_map(Value::from),
        1 => ".{0,20}".prop_map(Value::from),
    ];
    service
        .prop_map(|service| json!({"service": service}))
        .prop_filter("the prober table rejects it", |grpc| is_accepted("grpc", grpc))
        .prop_map(|grpc| Probe { http_get: None, tcp_socket: None, grpc: Some(grpc), timeout_seconds: 1 })
}

/// Returns whether the filter accepts such a prober. It rejects the others when it reads the table,
/// before any probe.
fn is_accepted(handler: &str, value: &Value) -> bool {
    let mut value = value.clone();
    value["port"] = 8080.into();
    let config = json!({"podIP": "127.0.0.1", "probers": {"/app-health/app/readyz": {handler: value}}});
    PluginConfig::parse(config.to_string().as_bytes()).is_ok()
}
