//! Tests of gRPC probes through a real Envoy, with a real health server and with servers that break
//! the protocol.

use std::net::SocketAddr;

use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::Tls;
use kit::app::{Step, answer};
use kit::envoy::Version;
use kit::net;
use kit::pod::Pod;
use serde_json::{Value, json};
use tonic_health::ServingStatus;

use crate::e2e::{Listens, Row, check_with};

fn grpc() -> Value {
    json!({"grpc": {"port": "PORT"}})
}

fn over_tls() -> Value {
    json!({"grpc": {"port": "PORT", "mode": "TLS"}})
}

fn scripted(name: &'static str, answer: GrpcAnswer, status: u16, word: &'static str) -> Row {
    Row { name, app: Listens::Grpc(None, answer), prober: grpc(), status, word }
}

fn rows() -> Vec<Row> {
    let serving = || GrpcAnswer::serving(1);
    let h2 = || Some(Tls::with_alpn(&["h2"]));
    let with_body = |body: &[u8]| GrpcAnswer { body: body.to_vec(), ..serving() };
    let plain =
        |name, steps, prober, status, word| Row { name, app: Listens::Plain(steps), prober, status, word };
    vec![
        scripted("serving", serving(), 200, ""),
        scripted("not-serving", GrpcAnswer::serving(2), 521, "grpc_not_serving"),
        scripted("unknown", GrpcAnswer::serving(0), 522, "grpc_unknown"),
        scripted("empty-message", GrpcAnswer::message(b""), 522, "grpc_unknown"),
        scripted("foreign-number", GrpcAnswer::serving(99), 522, "grpc_unknown"),
        scripted("service-unknown", GrpcAnswer::serving(3), 523, "grpc_service_unknown"),
        scripted("not-found", GrpcAnswer::trailers_only("5"), 523, "grpc_service_unknown"),
        scripted("unimplemented", GrpcAnswer::trailers_only("12"), 524, "grpc_unimplemented"),
        scripted("deadline", GrpcAnswer::trailers_only("4"), 504, "timeout"),
        scripted("denied", GrpcAnswer::trailers_only("7"), 526, "grpc_error"),
        scripted("nonsense-status", GrpcAnswer::trailers_only("zero"), 526, "grpc_error"),
        scripted("trailers-only-ok", GrpcAnswer::trailers_only("0"), 526, "grpc_error"),
        scripted("no-trailers", GrpcAnswer { trailers: vec![], ..serving() }, 526, "grpc_error"),
        // grpc-go, which kubelet uses, ignores the HTTP status of a gRPC response.
        scripted("status-404", GrpcAnswer { status: 404, ..serving() }, 200, ""),
        scripted(
            "other-type",
            GrpcAnswer { headers: vec![("content-type", "text/html")], ..serving() },
            526,
            "grpc_error",
        ),
        scripted(
            "with-subtype",
            GrpcAnswer { headers: vec![("content-type", "application/grpc+proto")], ..serving() },
            200,
            "",
        ),
        scripted("two-messages", with_body(b"\0\0\0\0\x02\x08\x01\0\0\0\0\x02\x08\x01"), 526, "grpc_error"),
        scripted("compressed", with_body(b"\x01\0\0\0\x02\x08\x01"), 526, "grpc_error"),
        scripted("truncated", with_body(b"\0\0\0\0\x05\x08\x01"), 526, "grpc_error"),
        scripted("four-gigabytes", with_body(b"\0\xff\xff\xff\xff\x08\x01"), 526, "grpc_error"),
        scripted("no-message", with_body(b""), 526, "grpc_error"),
        Row { name: "tls", app: Listens::Grpc(h2(), serving()), prober: over_tls(), status: 200, word: "" },
        Row {
            name: "tls-not-serving",
            app: Listens::Grpc(h2(), GrpcAnswer::serving(2)),
            prober: over_tls(),
            status: 521,
            word: "grpc_not_serving",
        },
        Row { name: "refused", app: Listens::Closed, prober: grpc(), status: 502, word: "refused" },
        Row { name: "tls-refused", app: Listens::Closed, prober: over_tls(), status: 502, word: "refused" },
        plain(
            "tls-plaintext",
            vec![Step::Write(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())],
            over_tls(),
            // Envoy's result of a callout does not contain the reason why the connection failed.
            502,
            "refused",
        ),
        plain("tls-silent", vec![Step::Hang], over_tls(), 504, "timeout"),
        plain("silent", vec![Step::Hang], grpc(), 504, "timeout"),
        plain("closed", vec![], grpc(), 520, "closed"),
        plain("http-1", answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), grpc(), 527, "protocol"),
    ]
}

#[tokio::test]
async fn answers() {
    check_with("grpc", Version::Newest, rows()).await;
}

#[tokio::test]
async fn answers_on_the_oldest_envoy() {
    check_with("grpc-floor", Version::Floor, rows()).await;
}

/// Probes tonic's health server for each of its services.
#[tokio::test]
async fn a_real_health_server() {
    let ip = net::loopback();
    let (app, reporter) = GrpcApp::real(SocketAddr::new(ip, 0)).await;
    reporter.set_service_status("good", ServingStatus::Serving).await;
    reporter.set_service_status("bad", ServingStatus::NotServing).await;
    let prober = |service: &str| json!({"grpc": {"port": app.port(), "service": service}});
    let table = json!({
        "/app-health/whole/readyz": {"grpc": {"port": app.port(), "service": null}},
        "/app-health/good/readyz": prober("good"),
        "/app-health/bad/readyz": prober("bad"),
        "/app-health/none/readyz": prober("none"),
    });
    let pod = Pod::start("grpc-real", ip, &table).await;
    for (container, status) in [("whole", 200), ("good", 200), ("bad", 521), ("none", 523)] {
        assert_eq!(pod.probe(container).await.status, status, "{container}");
    }
    reporter.set_service_status("good", ServingStatus::NotServing).await;
    assert_eq!(pod.probe("good").await.status, 521);
    pod.envoy.stop().await;
}
