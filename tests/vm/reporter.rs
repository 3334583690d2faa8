//! Tests of the messages that the agent sends to a discovery server: in the order of Istio's agent,
//! with the project's own report, for pushed probes, and at its termination.

use kit::net;
use kit::reserved_port::ReservedPort;
use kit::vm::scripted_ads::{Script, ScriptedAds, Seen};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use xds::type_url::{ENDPOINT, PROBE};
use xds::{Node, Request, Variant};

use crate::reporter_support::{AgentConfig, last_report_is, report_fields};

fn hello() -> Value {
    json!({"session": 17, "heartbeatSeconds": 60})
}

async fn assert_istio_messages(name: &str, xds: &str, variant: Variant) {
    // The server ignores the first report, as istiod does while its cache is stale.
    let server = ScriptedAds::start(Script { forgets: 1, ..Script::plain() }).await;
    let vm = AgentConfig::probed(name).reports_to(&server).args(&["--xds", xds, "--network", "dc1"]);
    let vm = vm.args(&["--label", "version=v2", "--locality", "eu/a/1"]).start();
    server.until("the health", |_| server.health().is_some()).await;
    assert_eq!(server.health(), Some(Ok(())));
    vm.set_healthy(false);
    server.until("the failure", |_| matches!(server.health(), Some(Err(_)))).await;
    let Some(Err(why)) = server.health() else { panic!("{:?}", server.health()) };
    assert!(why.contains("exit"), "{why}");

    let seen = server.seen();
    let first = &seen[0];
    assert_eq!((first.variant, &*first.request.type_url), (variant, ENDPOINT));
    let Node { id, program, locality, .. } = first.node.clone().expect("a node");
    let ip = vm.sidecar.ip;
    assert!(
        id.starts_with(&format!("sidecar~{ip}~")) && id.ends_with(".shop~shop.svc.cluster.local"),
        "{id}"
    );
    let expected = ("app-health-agent", Some(["eu", "a", "1"].map(str::to_owned)));
    assert_eq!((&*program, locality), expected);
    for (name, value) in [
        ("NAMESPACE", json!("shop")),
        ("SERVICE_ACCOUNT", json!("pay")),
        ("INSTANCE_IPS", json!(ip.to_string())),
        ("AUTO_REGISTER_GROUP", json!("payments")),
        ("WORKLOAD_ENTRY", Value::Null),
        ("NETWORK", json!("dc1")),
        ("LABELS", json!({"version": "v2"})),
        ("CLUSTER_ID", json!("Kubernetes")),
        ("APP_HEALTH", json!({"version": 1})),
    ] {
        assert_eq!(first.metadata[name], value, "{name}");
    }
    assert_eq!(first.metadata["PROXY_CONFIG"]["readinessProbe"]["periodSeconds"], json!(1));
    for Seen { request, .. } in &seen {
        assert_eq!((&*request.version, &*request.nonce), ("", ""));
        assert!(request.subscription.is_empty() && request.initial_versions.is_empty(), "{request:?}");
    }
    let reports: Vec<&Seen> = seen.iter().skip(1).collect();
    assert!(reports.iter().all(|seen| seen.is_report() && seen.node.is_none()), "{reports:#?}");
    let errors: Vec<Option<u64>> = reports.iter().map(|seen| seen.error_code()).collect();
    assert_eq!(errors, [None, None, Some(13)], "expected the report, its repetition, and the failure");
    assert_eq!(vm.view().await["stream"]["server"], json!("istio"));
}

#[tokio::test]
async fn reports_to_istiod_sotw() {
    assert_istio_messages("reporter-sotw", "sotw", Variant::Sotw).await;
}

#[tokio::test]
async fn reports_to_istiod_delta() {
    assert_istio_messages("reporter-delta", "delta", Variant::Delta).await;
}

#[tokio::test]
async fn reports_to_app_health_discovery() {
    let server = ScriptedAds::start(Script::ours(json!({"session": 17, "heartbeatSeconds": 1}))).await;
    let vm = AgentConfig::probed("reporter-ours").reports_to(&server).start();
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    let beats =
        |seen: &[Seen]| seen.iter().filter(|seen| seen.is_ours() && report_fields(seen).0 == 1).count();
    server.until("heartbeats", |seen| beats(seen) >= 3).await;
    vm.set_healthy(false);
    server.until("unhealthy", |seen| last_report_is(seen, "Unhealthy", "ExecExit")).await;
    vm.set_healthy(true);
    server.until("healthy again", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    let reports: Vec<Seen> = server.seen().into_iter().filter(Seen::is_ours).collect();
    let epochs: Vec<Value> =
        reports.iter().map(|seen| seen.metadata["APP_HEALTH_REPORT"]["epoch"].clone()).collect();
    assert!(epochs.iter().all(|epoch| *epoch == epochs[0]) && epochs[0].as_str().map(str::len) == Some(32));
    let generations: Vec<u64> = reports.iter().map(|seen| report_fields(seen).0).collect();
    assert!(generations.is_sorted(), "{generations:?}");
    for report in &reports {
        let is_healthy = report_fields(report).1 == "Healthy";
        assert_eq!(
            report.request.error.is_none(),
            is_healthy,
            "a report of another state than Healthy must have an error: {report:#?}"
        );
    }
    vm.until_stream("the session", |stream| {
        stream["connected"] == true && stream["server"] == "app-health" && stream["session"] == 17
    })
    .await;
    let metrics = vm.metrics().await;
    for line in [
        "app_health_agent_discovery_connected 1",
        "app_health_agent_discovery_connects_total{result=\"ok\"} 1",
        "app_health_agent_reports_total{result=\"acked\"}",
    ] {
        assert!(metrics.contains(line), "{line}:\n{metrics}");
    }
}

#[tokio::test]
async fn pushed_probes_are_acknowledged_or_rejected() {
    let reserved = ReservedPort::new(net::loopback());
    let target = TcpListener::bind(reserved.address).await.expect("a free port");
    let probe = |probe: Value| json!({"session": 3, "heartbeatSeconds": 60, "probe": probe});
    let good = probe(json!({"periodSeconds": 1, "timeoutSeconds": 60, "tcpSocket": {
        "port": reserved.port(), "host": reserved.address.ip().to_string(),
    }}));
    let server = ScriptedAds::start(Script::ours(good.clone())).await;
    let _vm = AgentConfig::new("reporter-pushed").reports_to(&server).args(&["--group", "payments"]).start();
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    let answers = |seen: &[Seen]| -> Vec<Request> {
        let requests = seen.iter().map(|seen| &seen.request);
        requests.filter(|request| request.type_url == PROBE).cloned().collect()
    };
    let bad = |what: Value| {
        server.change(|script| script.hello = Some(probe(what)));
    };
    bad(json!({"exec": {"command": ["touch", "/nonexistent"]}}));
    server.until("the second answer", |seen| answers(seen).len() == 2).await;
    bad(json!({"grpc": {"port": 0}}));
    server.until("the third answer", |seen| answers(seen).len() == 3).await;
    let all = answers(&server.seen());
    assert_eq!((all[0].version.clone(), all[0].error.clone()), (format!("v{good}"), None));
    let words = [
        "spec.probe.exec: rejected, pushed exec probes require --allow-pushed-exec",
        "spec.probe.grpc.port: must be between 1 and 65535, got 0",
    ];
    for (answer, words) in all[1..].iter().zip(words) {
        assert_eq!(answer.error, Some(Request::status(3, words)));
        assert_eq!(answer.version, format!("v{good}"), "the old probe must stay in use");
    }
    drop(target);
    server.until("unhealthy", |seen| last_report_is(seen, "Unhealthy", "ConnectionRefused")).await;
}

#[tokio::test]
async fn the_report_is_repeated_when_a_pending_entry_gets_a_session() {
    let server = ScriptedAds::start(Script::ours(json!({"session": 0, "heartbeatSeconds": 60}))).await;
    let _vm = AgentConfig::probed("reporter-pending").reports_to(&server).start();
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    let before = server.seen().len();
    server.change(|script| script.hello = Some(hello()));
    server.until("the report_fields again", |seen| seen[before..].iter().any(Seen::is_ours)).await;
}

/// Sends SIGTERM to the agent, asserts that it exits with 0, and returns all messages that the
/// server received.
async fn final_report(name: &str, script: Script) -> Vec<Seen> {
    let is_plain = script.hello.is_none();
    let server = ScriptedAds::start(script).await;
    let vm = AgentConfig::probed(name).reports_to(&server).start();
    let is_up =
        |seen: &[Seen]| seen.iter().any(|seen| if is_plain { seen.is_report() } else { seen.is_ours() });
    server.until("the first report", is_up).await;
    if !is_plain {
        server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    }
    vm.sidecar.signal(Signal::SIGTERM);
    let (code, log) = vm.sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    server.seen()
}

#[tokio::test]
async fn final_report_to_app_health_discovery() {
    let seen = final_report("final_report-ours", Script::ours(hello())).await;
    assert!(last_report_is(&seen, "Unhealthy", "Terminating"), "{seen:#?}");
}

#[tokio::test]
async fn final_report_to_istiod() {
    let seen = final_report("final_report-plain", Script::plain()).await;
    assert_eq!(seen.last().and_then(Seen::error_code), Some(13), "{seen:#?}");
}

#[tokio::test]
async fn final_report_to_a_silent_server() {
    let seen =
        final_report("final_report-silent", Script { acknowledges: false, ..Script::ours(hello()) }).await;
    assert!(last_report_is(&seen, "Unhealthy", "Terminating"), "{seen:#?}");
}

#[tokio::test]
async fn the_agent_terminates_without_a_server() {
    let vm = AgentConfig::probed("final_report-nobody")
        .args(&["--discovery", "127.0.0.1:9", "--discovery-plaintext"])
        .start();
    vm.until_disconnected("refused").await;
    vm.sidecar.signal(Signal::SIGTERM);
    let (code, log) = vm.sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn draining_is_reported_and_the_stream_stays_open() {
    let server = ScriptedAds::start(Script::ours(json!({"session": 2, "heartbeatSeconds": 1}))).await;
    let vm = AgentConfig::probed("reporter-drain").reports_to(&server).start();
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    vm.sidecar.local("POST /drain", "Host: localhost\r\n").await;
    let drained = |seen: &[Seen]| {
        seen.iter().filter(|seen| seen.is_ours() && report_fields(seen).2 == "Draining").count()
    };
    server.until("draining, and heartbeats of it", |seen| drained(seen) >= 3).await;
    assert_eq!(server.streams(), 1);
    vm.sidecar.signal(Signal::SIGTERM);
    let (code, log) = vm.sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}
