//! Tests of the responses that a hostile client gets from a real Envoy with the filter.

use std::net::SocketAddr;

use kit::app::{App, answer};
use kit::caller::{self, Answer};
use kit::net;
use kit::pod::Pod;
use serde_json::json;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nServer: secret\r\nSet-Cookie: secret\r\n\r\n";

async fn pod(name: &str) -> (App, Pod) {
    let ip = net::loopback();
    let app = App::start(ip, answer(OK)).await;
    let prober = json!({"httpGet": {"port": app.port(), "host": "192.0.2.1"}});
    let table = json!({"/app-health/app/readyz": prober, "/app-health/app.two/livez": prober});
    let pod = Pod::start(&format!("security-{name}"), ip, &table).await;
    (app, pod)
}

async fn raw(pod: &Pod, request: &[u8]) -> Answer {
    caller::send(pod.listener, request).await
}

fn head(method: &str, target: &[u8], more: &str) -> Vec<u8> {
    [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: a\r\n", more.as_bytes(), b"\r\n"].concat()
}

/// Only paths of the prober table reach the application. Envoy may reject other paths itself.
#[tokio::test]
async fn unusual_paths_are_rejected() {
    let (app, pod) = pod("paths").await;
    let long = [b"/app-health/app/readyz/".as_slice(), &[b'x'; 60_000]].concat();
    let paths: [&[u8]; 24] = [
        b"/",
        b"/app-health",
        b"/app-health/",
        b"/app-health/app",
        b"/app-health/app/",
        b"/app-health/app/readyz/",
        b"/app-health//app/readyz",
        b"//app-health/app/readyz",
        b"/app-health/app/./readyz",
        b"/app-health/x/../app/readyz",
        b"/app-health/app%2Freadyz",
        b"/app-health/app/%72eadyz",
        b"/app-health/app%5Creadyz",
        b"/app-health/app\\readyz",
        b"/APP-HEALTH/app/readyz",
        b"/app-health/App/readyz",
        b"/app-health/app/readyz;a=b",
        b"/app-health/app/readyz#a",
        b"/app-health/app/livez",
        b"/app-health/app.two/readyz",
        b"/app-lifecycle/app/readyz",
        b"/app-health/app/readyz\xff",
        b"*",
        &long,
    ];
    for path in paths {
        let answer = raw(&pod, &head("GET", path, "")).await;
        let shown = String::from_utf8_lossy(&path[..path.len().min(40)]).into_owned();
        assert!(matches!(answer.status, 400 | 404 | 431), "{shown}: {answer:?}");
    }
    for path in ["/app-health/app/readyz", "/app-health/app/readyz?a=b?c", "/app-health/app.two/livez"] {
        assert_eq!(caller::probe(pod.listener, path).await.status, 200, "{path}");
    }
    assert_eq!(
        raw(&pod, &head("GET", b"http://other/app-health/app/readyz", "Connection: close\r\n")).await.status,
        200
    );
    assert_eq!(app.seen().len(), 4, "only these reach the application");
    pod.envoy.stop().await;
}

#[tokio::test]
async fn only_get_without_a_body() {
    let (app, pod) = pod("methods").await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"] {
        let answer = raw(&pod, &head(method, b"/app-health/app/readyz", "Connection: close\r\n")).await;
        assert_eq!(answer.status, 405, "{method}");
    }
    for body in ["Content-Length: 5\r\n", "Content-Length: 1073741824\r\n", "Transfer-Encoding: chunked\r\n"]
    {
        let answer = raw(&pod, &head("GET", b"/app-health/app/readyz", body)).await;
        assert_eq!((answer.status, answer.word().as_str()), (400, "bad_request"), "{body}");
    }
    let answer = raw(&pod, &head("GET", b"/app-health/app/readyz", "Content-Length: 0\r\n")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(app.seen().len(), 1);
    pod.envoy.stop().await;
}

/// On the port of Envoy's metrics, a request whose body does not end would keep a connection to the admin
/// interface.
#[tokio::test]
async fn a_scrape_has_no_body() {
    let (_app, pod) = pod("stats-body").await;
    let stats = SocketAddr::new(pod.ip, 15090);
    for body in ["Content-Length: 5\r\n\r\nabcd", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"] {
        let request = format!("GET /stats/prometheus HTTP/1.1\r\nHost: a\r\n{body}");
        let answer = caller::send(stats, request.as_bytes()).await;
        assert_eq!(answer.status, 413, "{body}");
    }
    let answer = caller::send(stats, &head("GET", b"/stats/prometheus?usedonly", "")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("envoy_server_live"), "{answer:?}");
    pod.envoy.stop().await;
}

#[tokio::test]
async fn requests_cannot_be_smuggled() {
    let (app, pod) = pod("smuggling").await;
    let path = b"/app-health/app/readyz";
    for more in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length: +5\r\n",
        "X-Odd : a\r\n",
        "X-Odd\r\n",
    ] {
        let answer = raw(&pod, &head("GET", path, more)).await;
        assert!(matches!(answer.status, 400 | 501), "{more:?}: {answer:?}");
    }
    let upgrade =
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    // Envoy ignores the upgrade, answers `Expect` with an interim 100, and drops the header. Each
    // is one request.
    for (more, status) in
        [(upgrade, 200), ("Expect: 100-continue\r\n", 100), ("X-Odd: caf\u{e9}\u{ff}\r\n", 200)]
    {
        let answer = raw(&pod, &head("GET", path, more)).await;
        assert_eq!(answer.status, status, "{more:?}: {answer:?}");
    }
    assert_eq!(app.seen_at_least(3).await.len(), 3, "only these reach the application");
    pod.envoy.stop().await;
}

/// No response contains a header or a body byte of the application.
#[tokio::test]
async fn no_data_of_the_application_leaves_the_pod() {
    for (name, line) in
        [("ok", "200 OK"), ("teapot", "418 secret"), ("failure", "500 secret"), ("redirect", "304 secret")]
    {
        let ip = net::loopback();
        let headers =
            "Set-Cookie: secret\r\nServer: secret\r\nX-Secret: secret\r\nContent-Type: secret/secret\r\n";
        let body = if name == "redirect" { "" } else { "secret" };
        let length = format!("Content-Length: {}\r\n", body.len());
        let app = App::start(ip, answer(format!("HTTP/1.1 {line}\r\n{headers}{length}\r\n{body}"))).await;
        let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}}});
        let pod = Pod::start(&format!("security-bytes-{name}"), ip, &table).await;
        let answer = pod.probe("app").await;
        assert!(!format!("{:?}{}", answer.headers, answer.text()).contains("secret"), "{answer:?}");
        let names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
        let known = ["date", "transfer-encoding", "content-length", "connection"];
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
        pod.envoy.stop().await;
    }
}

/// The log and the metrics contain no text that a caller sent.
#[tokio::test]
async fn no_data_of_a_client_reaches_the_application() {
    let (_app, pod) = pod("trace").await;
    for number in 0..300 {
        let path = format!("/app-health/evil{number}%0a\x1b[31m/readyz");
        raw(&pod, &head("GET", path.as_bytes(), "X-Evil: evil\r\n")).await;
    }
    let metrics = pod.envoy.admin("/stats/prometheus").await.expect("admin answers");
    assert!(!metrics.contains("evil"));
    let ours = metrics.lines().filter(|line| line.starts_with("app_health_")).count();
    assert!(ours <= 8, "{ours} series");
    assert!(!pod.envoy.log().contains("evil"), "{}", pod.envoy.log());
    pod.envoy.stop().await;
}

/// A request with a wrong method or a body is counted, but does not change the health of the probe.
#[tokio::test]
async fn responses_of_other_services_give_no_verdict() {
    let (_app, pod) = pod("verdict").await;
    assert_eq!(pod.probe("app").await.status, 200);
    for (method, more) in [("POST", ""), ("GET", "Content-Length: 5\r\n")] {
        raw(&pod, &head(method, b"/app-health/app/readyz", more)).await;
    }
    let metrics = pod.envoy.admin("/stats/prometheus").await.expect("admin answers");
    let has = |line: &str| metrics.lines().any(|other| other == line);
    assert!(has(r#"app_health_probe_success{container="app",kind="readyz"} 1"#), "{metrics}");
    assert!(has(r#"app_health_probes_total{container="app",kind="readyz",reason="method"} 1"#), "{metrics}");
    assert!(!pod.envoy.log().contains("probe app/readyz"), "{}", pod.envoy.log());
    pod.envoy.stop().await;
}

/// Envoy answers a request that looks like gRPC with status 200, whatever the reason. Such a request
/// gets no answer, and a failure is not counted as success.
#[tokio::test]
async fn requests_with_a_content_type_of_grpc_are_reset() {
    let ip = net::loopback();
    let table = json!({
        "/app-health/dead/readyz": {"httpGet": {"port": 1}},
        "/app-health/dead/livez": {"tcpSocket": {"port": 1}},
        "/app-health/dead/startupz": {"grpc": {"port": 1}},
    });
    let pod = Pod::start("security-grpc", ip, &table).await;
    for path in ["dead/readyz", "dead/livez", "dead/startupz", "other/readyz"] {
        for content_type in ["application/grpc", "application/grpc+proto", "APPLICATION/GRPC"] {
            let target = format!("/app-health/{path}");
            let more = format!("Content-Type: {content_type}\r\n");
            let answer = raw(&pod, &head("GET", target.as_bytes(), &more)).await;
            assert!(!answer.complete, "{path} {content_type}: {answer:?}");
        }
    }
    pod.envoy.stop().await;
}
