//! Tests of requests to the filter: the exact request that it forwards, and its local replies.

use wasm_host::scenario::Scenario;
use wasm_host::transcript::{Effect, Headers, headers};

use crate::support::{callouts, check, get, reply, value, vm_with_probers, vm_with_table};

const HTTP: &str = "/app-health/app/readyz";
const HOOK: &str = "/app-lifecycle/app/prestopz";
const PATH: &[u8] = b"envoy.network.transport_socket.original_dst_address";

fn probe_with(prober: &str) -> Vec<Effect> {
    let mut vm = vm_with_probers(&[(HTTP, prober)]);
    let head = Scenario::get(HTTP).with("cookie", "evil").with("x-envoy-upstream-rq-timeout-ms", "9").head;
    let (context, _) = vm.request(head, true).unwrap();
    vm.transcript().of(context)
}

/// The effects of a routed probe: first the filter state, so that no route can dial without it,
/// then the complete request headers.
fn forwarded(destination: &str, head: Headers) -> Vec<Effect> {
    let length = [u8::try_from(destination.len()).unwrap()];
    let argument = [b"\x0a\x33", PATH, b"\x12", &length, destination.as_bytes(), b"\x18\x01"].concat();
    vec![Effect::Foreign { name: "set_envoy_filter_state".into(), argument }, Effect::RequestHeadersSet(head)]
}

#[test]
fn http_probes_use_a_route() {
    let prober = r#"{"httpGet": {"path": "/ready?deep=1", "port": 8080}, "timeoutSeconds": 2}"#;
    let head = headers([
        (":method", "GET"),
        (":path", "/ready?deep=1"),
        (":authority", "10.0.0.5:8080"),
        (":scheme", "http"),
        ("user-agent", "kube-probe/1.36"),
        ("accept", "*/*"),
        ("connection", "close"),
        ("x-app-health-kind", "http"),
        ("x-envoy-upstream-rq-timeout-ms", "2000"),
        ("x-forwarded-proto", "http"),
    ]);
    assert_eq!(probe_with(prober), forwarded("10.0.0.5:8080", head));
}

#[test]
fn https_probes_use_a_route_without_connection_close() {
    let prober = r#"{"httpGet": {"path": "live", "port": 8443, "scheme": "HTTPS", "httpHeaders": [
        {"name": "Host", "value": "shop.example.com"}, {"name": "X-One", "value": "a"}, {"name": "x-one", "value": "é"},
        {"name": "Connection", "value": "keep-alive"}, {"name": "Content-Length", "value": "4"}]}}"#;
    let head = headers([
        (":method", "GET"),
        (":path", "/live"),
        (":authority", "shop.example.com"),
        (":scheme", "https"),
        ("user-agent", "kube-probe/1.36"),
        ("accept", "*/*"),
        ("x-one", "a"),
        ("x-one", "é"),
        ("x-app-health-kind", "https"),
        ("x-envoy-upstream-rq-timeout-ms", "1000"),
        ("x-forwarded-proto", "http"),
    ]);
    assert_eq!(probe_with(prober), forwarded("10.0.0.5:8443", head));
}

#[test]
fn tcp_probes_use_a_route() {
    let head = headers([
        (":method", "POST"),
        (":path", "/"),
        (":authority", "10.0.0.5:5432"),
        (":scheme", "http"),
        ("x-forwarded-proto", "http"),
        ("x-app-health-kind", "tcp"),
        ("x-envoy-upstream-rq-timeout-ms", "1000"),
    ]);
    assert_eq!(probe_with(r#"{"tcpSocket": {"port": 5432}}"#), forwarded("10.0.0.5:5432", head));
}

/// Asserts that a gRPC probe makes a callout with this scheme, cluster and body. Its other fields
/// are the same for all gRPC probes.
fn check_grpc(prober: &str, scheme: &str, cluster: &str, body: &[u8]) {
    let head = headers([
        (":method", "POST"),
        (":path", "/grpc.health.v1.Health/Check"),
        (":authority", "10.0.0.5:9000"),
        (":scheme", scheme),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "kube-probe/1.36"),
        ("grpc-timeout", "3000m"),
        ("x-app-health-dst", "10.0.0.5:9000"),
    ]);
    let call = Effect::HttpCall {
        token: 4,
        cluster: cluster.into(),
        headers: head,
        body: body.into(),
        trailers: Headers::new(),
        timeout_ms: 3000,
    };
    assert_eq!(probe_with(prober), [call]);
}

#[test]
fn grpc_probes_use_a_callout() {
    let plain = r#"{"grpc": {"port": 9000}, "timeoutSeconds": 3}"#;
    check_grpc(plain, "http", "app_health_grpc", b"\0\0\0\0\0");
    let tls = r#"{"grpc": {"port": 9000, "service": "shop", "mode": "tls"}, "timeoutSeconds": 3}"#;
    check_grpc(tls, "https", "app_health_grpc_tls", b"\0\0\0\0\x06\x0a\x04shop");
}

#[test]
fn an_undeclared_path_gets_a_local_reply() {
    for path in
        ["/app-health/app/startupz", "/app-health/", "/app-health/app/readyz/", "/app-lifecycle/app/x"]
    {
        let mut vm = vm_with_table();
        let end = Scenario::get(path).run(&mut vm).unwrap();
        assert_eq!(end, reply(404, "unknown_probe: no such probe is declared"), "{path}");
        let dials = |effect: &Effect| matches!(effect, Effect::HttpCall { .. } | Effect::Foreign { .. });
        assert!(!vm.transcript().effects().iter().any(dials), "{path}");
    }
}

#[test]
fn the_callers_query_is_ignored() {
    for query in ["?", "?a=b", "?/../livez", "?%0a", "?a?b"] {
        let mut vm = vm_with_table();
        let (context, _) = vm.request(get(&format!("{HTTP}{query}")), true).unwrap();
        assert_eq!(value(&vm.stream(context).unwrap().request_headers, ":path"), "/ready?deep=1", "{query}");
    }
}

#[test]
fn requests_that_are_not_probes_are_rejected() {
    let with_body = Scenario { end_of_stream: false, ..Scenario::get(HTTP) };
    let method = |method: &str| Scenario::get(HTTP).with(":method", method);
    let mut rows: Vec<_> = ["POST", "HEAD", "PUT", "TRACE", "OPTIONS", "CONNECT", "get", ""]
        .map(|name| (name, method(name), "405 method"))
        .into();
    rows.push(("none", Scenario::get(HTTP).without(":method"), "405 method"));
    rows.push(("body", with_body, "400 bad_request"));
    let mut vm = vm_with_table();
    check(&mut vm, rows);
    assert!(callouts(&vm).is_empty());
}

#[test]
fn only_kubelets_user_agent_is_forwarded() {
    let ours = "kube-probe/app-health";
    let rows = [
        (HTTP, Some(&b"kube-probe/1.36"[..]), "kube-probe/1.36"),
        (HTTP, Some(b"kube-probe/1.36+"), "kube-probe/1.36+"),
        (HTTP, Some(b"kube-probe/1234567890123456"), "kube-probe/1234567890123456"),
        (HTTP, Some(b"kube-probe/12345678901234567"), ours),
        (HTTP, Some(b"kube-probe/"), ours),
        (HTTP, Some(b"kube-probe/1.36 evil"), ours),
        (HTTP, Some(b"Kube-Probe/1.36"), ours),
        (HTTP, Some(b"curl/8"), ours),
        (HTTP, Some(b"kube-probe/\xff"), ours),
        (HTTP, Some(b""), ours),
        (HTTP, None, ours),
        (HOOK, Some(b"kube-lifecycle/1.36"), "kube-lifecycle/1.36"),
        (HOOK, Some(b"Go-http-client/1.1"), "kube-lifecycle/app-health"),
    ];
    for (path, sent, expected) in rows {
        let mut vm = vm_with_table();
        let scenario = Scenario::get(path).without("user-agent");
        let scenario = sent.map_or(scenario.clone(), |sent| scenario.with("user-agent", sent));
        let (context, _) = vm.request(scenario.head, true).unwrap();
        assert_eq!(value(&vm.stream(context).unwrap().request_headers, "user-agent"), expected, "{sent:?}");
    }
}

#[test]
fn a_declared_user_agent_has_precedence_and_an_empty_one_is_omitted() {
    for declared in ["mine/1", ""] {
        let header = format!(r#"[{{"name": "user-agent", "value": "{declared}"}}]"#);
        let prober = format!(r#"{{"httpGet": {{"port": 80, "httpHeaders": {header}}}}}"#);
        let mut vm = vm_with_probers(&[(HTTP, &prober)]);
        let (context, _) = vm.request(get(HTTP), true).unwrap();
        assert_eq!(value(&vm.stream(context).unwrap().request_headers, "user-agent"), declared);
    }
}
