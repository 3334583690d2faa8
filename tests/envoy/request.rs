//! Tests through a real Envoy that the application receives exactly the request that kubelet
//! would have sent.

use std::net::SocketAddr;

use kit::app::tls::{self, Tls};
use kit::app::{App, Seen, answer};
use kit::caller;
use kit::net;
use kit::pod::{Pod, SOURCE};
use serde_json::{Value, json};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Headers that a caller could use to influence the request to the application.
const FOREIGN: [(&str, &str); 16] = [
    ("User-Agent", "curl/8 secret"),
    ("Authorization", "Bearer secret"),
    ("Cookie", "a=secret"),
    ("Referer", "secret"),
    ("X-Forwarded-For", "192.0.2.1"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Client-Cert", "secret"),
    ("X-Request-Id", "secret"),
    ("X-Envoy-Original-Dst-Host", "192.0.2.1:80"),
    ("X-Envoy-Retry-On", "5xx"),
    ("X-Envoy-Max-Retries", "5"),
    ("X-Envoy-Upstream-Rq-Timeout-Ms", "1"),
    ("X-Envoy-Upstream-Alt-Stat-Name", "secret"),
    ("X-App-Health-Kind", "tcp"),
    ("X-APP-HEALTH-DST", "192.0.2.1:80"),
    ("TE", "trailers"),
];

/// Probes once with the headers in [`FOREIGN`], and returns the request that the application
/// received, and its port.
async fn seen(name: &str, scheme: &str, http: Value) -> (Seen, u16) {
    tls::install_provider();
    let ip = net::loopback();
    let acceptor = (scheme == "HTTPS").then(|| Tls::default().acceptor());
    let app = App::routes(SocketAddr::new(ip, 0), acceptor, |_| answer(OK)).await;
    let mut prober = json!({"port": app.port(), "scheme": scheme});
    for (key, value) in http.as_object().expect("an object") {
        prober[key] = value.clone();
    }
    let table = json!({"/app-health/app/readyz": {"httpGet": prober}});
    let pod = Pod::start(&format!("request-{name}"), ip, &table).await;
    let response = caller::get(pod.listener, "/app-health/app/readyz?secret=1", &FOREIGN).await;
    assert_eq!(response.status, 200, "{}", pod.envoy.log());
    let mut seen = app.seen();
    assert_eq!(seen.len(), 1, "one connection: {seen:?}");
    assert_eq!(pod.envoy.stat("cluster.secret.upstream_rq_total").await, None);
    pod.envoy.stop().await;
    (seen.remove(0), app.port())
}

/// Asserts that the application receives this request line and these header lines in any order.
/// `IP` and `PORT` stand for the application's address.
async fn check(name: &str, scheme: &str, http: Value, request_line: &str, expected: &[&str]) {
    let (seen, port) = seen(name, scheme, http).await;
    assert_eq!(seen.peer.ip(), SOURCE);
    assert_eq!(seen.request_line(), request_line);
    let mut lines: Vec<String> = seen.headers();
    lines.sort();
    let host = format!("Host: IP:{port}");
    let mut expected: Vec<String> =
        expected.iter().map(|line| line.replace("Host: IP:PORT", &host)).collect();
    expected.sort();
    let lines: Vec<String> = lines
        .into_iter()
        .map(|line| match line.strip_prefix("Host: 127.") {
            Some(rest) => format!("Host: IP:{}", rest.split(':').nth(1).unwrap_or_default()),
            None => line,
        })
        .collect();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn defaults() {
    let lines = ["Accept: */*", "Connection: close", "Host: IP:PORT", "User-Agent: kube-probe/app-health"];
    check("defaults", "HTTP", json!({}), "GET / HTTP/1.1", &lines).await;
}

#[tokio::test]
async fn declared_headers() {
    let http = json!({"path": "healthz?deep=1&x=%2F", "httpHeaders": [
        {"name": "Host", "value": "shop.example.com"},
        {"name": "X-Forwarded-Proto", "value": "https"},
        {"name": "x-forwarded-for", "value": "198.51.100.7"},
        {"name": "X-Request-Id", "value": "declared"},
        {"name": "Authorization", "value": "Basic declared"},
        {"name": "X-Twice", "value": "one"},
        {"name": "X-Twice", "value": "two"},
        {"name": "X-Under_Score", "value": "kept"},
        {"name": "Accept", "value": "text/plain"},
        {"name": "User-Agent", "value": "mine/1"},
        {"name": "Content-Length", "value": "5"},
        {"name": "Cookie", "value": "a=b"},
    ]});
    let lines = [
        "Accept: text/plain",
        "Authorization: Basic declared",
        "Connection: close",
        "Cookie: a=b",
        "Host: shop.example.com",
        "User-Agent: mine/1",
        "X-Forwarded-For: 198.51.100.7",
        "X-Forwarded-Proto: https",
        "X-Request-Id: declared",
        "X-Twice: one",
        "X-Twice: two",
        "X-Under_Score: kept",
    ];
    check("declared", "HTTP", http, "GET /healthz?deep=1&x=%2F HTTP/1.1", &lines).await;
}

#[tokio::test]
async fn empty_headers_are_omitted() {
    let http = json!({"path": "/a b#top", "httpHeaders": [
        {"name": "User-Agent", "value": ""},
        {"name": "Accept", "value": ""},
    ]});
    check("empty", "HTTP", http, "GET /a%20b HTTP/1.1", &["Connection: close", "Host: IP:PORT"]).await;
}

#[tokio::test]
async fn requests_over_tls() {
    let http = json!({"httpHeaders": [
        {"name": "X-Forwarded-Proto", "value": "https"},
        {"name": "Connection", "value": "keep-alive"},
    ]});
    let lines =
        ["Accept: */*", "Host: IP:PORT", "User-Agent: kube-probe/app-health", "X-Forwarded-Proto: https"];
    check("tls", "HTTPS", http, "GET / HTTP/1.1", &lines).await;
}

#[tokio::test]
async fn kubelets_user_agent_is_passed_on() {
    let ip = net::loopback();
    let app = App::start(ip, answer(OK)).await;
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}}});
    let pod = Pod::start("request-agent", ip, &table).await;
    for (sent, seen) in [
        ("kube-probe/1.36", "kube-probe/1.36"),
        ("kube-probe/1.36+", "kube-probe/1.36+"),
        ("kube-probe/", "kube-probe/app-health"),
        ("kube-probe/1.36 x", "kube-probe/app-health"),
        ("kube-probe/12345678901234567", "kube-probe/app-health"),
    ] {
        caller::get(pod.listener, "/app-health/app/readyz", &[("User-Agent", sent)]).await;
        let last = app.seen().pop().expect("a connection");
        assert_eq!(last.header("User-Agent").as_deref(), Some(seen), "{sent}");
    }
    pod.envoy.stop().await;
}
