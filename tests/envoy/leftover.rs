//! Tests through a real Envoy that a connection or callout of an earlier probe does not affect the
//! result of the next one.

use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::{self, Tls};
use kit::app::{App, Step, answer};
use kit::caller;
use kit::net;
use kit::pod::{self, Pod};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A TLS handshake that hangs affects only its own probe: the next probe opens a new connection.
#[tokio::test]
async fn an_unanswered_handshake_affects_one_probe_only() {
    tls::install_provider();
    let ip = net::loopback();
    let acceptor = Tls::with_alpn(&["http/1.1"]).acceptor();
    let listener = TcpListener::bind((ip, 0)).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        let mut hanging = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            if hanging.is_empty() {
                hanging.push(stream);
                continue;
            }
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(OK).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    let http = json!({"port": port, "scheme": "HTTPS"});
    let table = json!({
        "/app-health/hanging/readyz": {"httpGet": http, "timeoutSeconds": 1},
        "/app-health/app/readyz": {"httpGet": http},
    });
    let pod = Pod::start("leftover-tls", ip, &table).await;
    assert_eq!(pod.probe("hanging").await.status, 504);
    for _ in 0..3 {
        assert_eq!(pod.probe("app").await.status, 200, "{}", pod.envoy.log());
    }
    pod.envoy.stop().await;
}

/// In the wasm form, Envoy continues the callouts of callers that disconnected. They still count against
/// the limit of their prober, and other probers have their own limit. In the native form, they end.
#[tokio::test]
async fn callouts_of_disconnected_clients_keep_their_slots_or_end() {
    let ip = net::loopback();
    let hung = App::start(ip, vec![Step::Hang]).await;
    let good = GrpcApp::scripted(ip, None, GrpcAnswer::serving(1)).await;
    let table = json!({
        "/app-health/hung/readyz": {"grpc": {"port": hung.port()}, "timeoutSeconds": 600},
        "/app-health/good/readyz": {"grpc": {"port": good.port()}},
    });
    let pod = Pod::start("leftover-callouts", ip, &table).await;
    for number in 1..=100 {
        let mut stream = TcpStream::connect(pod.listener).await.expect("Envoy listens");
        stream.write_all(b"GET /app-health/hung/readyz HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
        // Envoy has read the request before it gets the FIN.
        pod.envoy.until_stat("http.app_health.downstream_rq_total", number).await;
    }
    assert_eq!(pod.probe("good").await.status, 200, "{}", pod.envoy.log());
    let active = "cluster.app_health_grpc.upstream_rq_active";
    if pod::is_native() {
        pod.envoy.until_stat(active, 0).await;
    } else {
        pod.envoy.until_stat(active, 10).await;
        let answer = pod.probe("hung").await;
        assert_eq!((answer.status, answer.word().as_str()), (429, "busy"));
    }
    pod.envoy.stop().await;
}

/// A probe whose declared path is also a path of the probe listener is sent to the application.
#[tokio::test]
async fn the_metrics_path_of_an_application_is_configurable() {
    let ip = net::loopback();
    let app = App::start(ip, answer(OK)).await;
    let http = |path: &str| json!({"httpGet": {"port": app.port(), "path": path}});
    let table = json!({
        "/app-health/app/readyz": http("/stats/prometheus"),
        "/app-health/query/readyz": http("/stats/prometheus?usedonly"),
    });
    let pod = Pod::start("leftover-metrics", ip, &table).await;
    for container in ["app", "query"] {
        assert_eq!(pod.probe(container).await.status, 200);
    }
    let lines: Vec<String> = app.seen_at_least(2).await.iter().map(|seen| seen.request_line()).collect();
    assert_eq!(lines, ["GET /stats/prometheus HTTP/1.1", "GET /stats/prometheus?usedonly HTTP/1.1"]);
    assert_eq!(caller::probe(pod.listener, "/stats/prometheus").await.status, 503);
    pod.envoy.stop().await;
}
