//! Tests of the agent's TCP and gRPC probes, and of targets that it does not connect to.

use futures_util::future::join_all;
use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::{Step, answer};
use kit::reserved_port::ReservedPort;
use serde_json::json;

use crate::prober_support::{AgentConfig, TIMEOUT, single_failure_probe, verdict_and_connections};

#[tokio::test]
async fn tcp_and_grpc() {
    const BROKEN: &str = "BadResponse: not a valid gRPC health response";
    let answers = [
        (GrpcAnswer::serving(1), "Healthy"),
        (GrpcAnswer::serving(2), "GrpcNotServing: gRPC health status NOT_SERVING"),
        (GrpcAnswer::serving(0), "GrpcNotServing: gRPC health status UNKNOWN"),
        (GrpcAnswer::serving(3), "GrpcNotServing: gRPC health status SERVICE_UNKNOWN"),
        (GrpcAnswer::trailers_only("12"), "GrpcStatus: gRPC status 12 UNIMPLEMENTED"),
        (GrpcAnswer::trailers_only("14"), "GrpcStatus: gRPC status 14 UNAVAILABLE"),
        (GrpcAnswer::trailers_only("0"), BROKEN),
        (GrpcAnswer { trailers: Vec::new(), ..GrpcAnswer::serving(1) }, BROKEN),
        (
            GrpcAnswer { headers: vec![("content-type", "text/html")], ..GrpcAnswer::serving(1) },
            "BadResponse: not a valid gRPC health response",
        ),
    ];
    let checks = answers.into_iter().enumerate().map(async |(index, (answer, expected))| {
        let plan = AgentConfig::new(&format!("vm-grpc-{index}"));
        let app = GrpcApp::scripted(plan.ip, None, answer).await;
        let vm =
            plan.start(&single_failure_probe("grpc", json!({"port": app.port(), "service": "payments"})));
        assert_eq!(vm.verdict().await, expected);
    });
    join_all(checks).await;
    for (name, handler, steps, expected) in [
        ("tcp", "tcpSocket", Vec::new(), "Healthy"),
        ("tcp-reset", "tcpSocket", vec![Step::Reset], "Healthy"),
        (
            "http-reset",
            "httpGet",
            vec![Step::Reset],
            "BadResponse: the connection closed before the response was complete",
        ),
        ("grpc-hangs", "grpc", vec![Step::Hang], "Timeout: no response within 1 s"),
        (
            "grpc-http1",
            "grpc",
            answer("HTTP/1.1 400 Bad Request\r\n\r\n"),
            "BadResponse: not a valid gRPC health response",
        ),
        (
            "grpc-closes",
            "grpc",
            Vec::new(),
            "BadResponse: the connection closed before the response was complete",
        ),
    ] {
        let (verdict, connections) =
            verdict_and_connections(&format!("vm-kind-{name}"), handler, steps, expected).await;
        assert_eq!(verdict, expected, "{name}, {connections} connections");
    }
    for handler in ["tcpSocket", "httpGet", "grpc"] {
        let plan = AgentConfig::new(&format!("vm-closed-{handler}"));
        let closed = ReservedPort::new(plan.ip);
        let vm = plan.start(&single_failure_probe(handler, json!({"port": closed.port()})));
        let expected = format!("ConnectionRefused: {}: connection refused", closed.address);
        assert_eq!(vm.verdict().await, expected, "{handler}");
    }
}

#[tokio::test]
async fn remote_targets_are_rejected() {
    for (fields, flags, expected) in [
        (
            json!({"port": 80, "host": "192.0.2.1"}),
            vec![],
            "TargetNotLocal: 192.0.2.1, which is not an address of this machine; set --allow-remote-probes to allow it",
        ),
        (
            json!({"port": 80, "host": "no.such.name.invalid"}),
            vec!["--allow-remote-probes"],
            "CannotRun: cannot look up no.such.name.invalid: ",
        ),
    ] {
        let vm = AgentConfig::new("vm-target")
            .args(&flags)
            .start(&single_failure_probe("tcpSocket", fields.clone()));
        let found = vm.verdict().await;
        // On a machine without a DNS resolver the lookup may time out first.
        let is_slow =
            found == format!("Timeout: no response within {TIMEOUT} s") && fields["host"] != "192.0.2.1";
        assert!(found.starts_with(expected) || is_slow, "{found}");
    }
}
