//! Tests of `app-health-agent run` with a real Envoy: start, restarts, readiness, and hostile
//! clients.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use kit::app::{App, answer};
use kit::caller;
use kit::envoy;
use kit::envoy::Version;
use kit::process::is_alive;
use kit::sidecar::{Builder, Sidecar};
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Metric that counts how often the agent became not ready.
const NOT_READY: &str = "app_health_agent_readiness_changes_total{to=\"not-ready\"";
const SECRET: &str = "Bearer do-not-tell";

async fn verbose(sidecar: &Sidecar) -> Value {
    serde_json::from_str(&sidecar.ready("?verbose").await.text()).expect("JSON")
}

#[tokio::test]
async fn run_starts_envoy_which_answers_probes() {
    for version in [Version::Newest, Version::Floor] {
        let builder = Builder::of(&format!("run-{version:?}"), version);
        let app = App::start(builder.ip, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).await;
        let headers = json!([{"name": "Authorization", "value": SECRET}]);
        let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port(), "httpHeaders": headers}, "timeoutSeconds": 60}});
        let sidecar = builder.env("ISTIO_KUBE_APP_PROBERS", &table.to_string()).start();
        sidecar.until(200, "ready").await;
        let listener = envoy::probe_listener(sidecar.ip);
        assert_eq!(caller::probe(listener, "/app-health/app/readyz").await.status, 200);

        let state = sidecar.folder.join("state");
        let mode =
            |path| std::fs::metadata(path).expect("the agent wrote the file").permissions().mode() & 0o777;
        assert_eq!((mode(state.clone()), mode(state.join("envoy.json"))), (0o700, 0o600));
        assert!(std::fs::read_to_string(state.join("envoy.json")).expect("readable").contains(SECRET));
        let shown = sidecar.local("GET /debug/bootstrap", "").await.text();
        assert!(shown.contains("***") && !shown.contains(SECRET), "{shown}");
        let environment =
            std::fs::read(format!("/proc/{}/environ", sidecar.envoy_pid())).expect("Envoy runs");
        assert!(!String::from_utf8_lossy(&environment).contains("ISTIO_KUBE_APP_PROBERS"));
        let first = verbose(&sidecar).await;
        assert_eq!((&first["phase"], &first["epoch"]), (&json!("ready"), &json!(1)));

        let envoy = sidecar.envoy_pid();
        sidecar.local("POST /quitquitquit", "").await;
        let (code, log) = sidecar.end().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(!is_alive(envoy) && !log.contains(SECRET), "{log}");
    }
}

#[tokio::test]
async fn the_user_configuration_is_kept_and_merged() {
    let builder = Builder::new("run-user");
    let user = builder.folder.join("user.json");
    std::fs::write(&user, user_config(builder.ip, 18080).to_string()).expect("a writable folder");
    let sidecar = builder.args(&["--user-config", user.to_str().expect("a path")]).start();
    sidecar.until(200, "ready").await;
    let theirs = caller::get((sidecar.ip, 18080).into(), "/", &[]).await;
    assert_eq!((theirs.status, theirs.text().as_str()), (200, "theirs"));
    let ours = caller::probe(envoy::probe_listener(sidecar.ip), "/app-health/~/readyz").await;
    assert_eq!((ours.status, ours.word().as_str()), (404, "unknown_probe"));
}

/// A user configuration without an admin port, whose listener answers every request directly.
pub(crate) fn user_config(ip: std::net::IpAddr, port: u16) -> Value {
    json!({"static_resources": {"listeners": [{
        "name": "theirs", "traffic_direction": "INBOUND",
        "address": {"socket_address": {"address": ip.to_string(), "port_value": port}},
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                "stat_prefix": "theirs",
                "route_config": {"virtual_hosts": [{"name": "theirs", "domains": ["*"], "routes": [
                    {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "theirs"}}}
                ]}]},
                "http_filters": [{"name": "envoy.filters.http.router", "typed_config":
                    {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]
            }
        }]}]
    }]}})
}

#[tokio::test]
async fn a_suspended_envoy_is_not_ready_until_it_continues() {
    let sidecar = Builder::new("run-stopped").start();
    sidecar.until(200, "ready").await;
    kill(sidecar.envoy_pid(), Signal::SIGSTOP).expect("Envoy runs");
    sidecar.until(503, "probe listener not answering").await;
    kill(sidecar.envoy_pid(), Signal::SIGCONT).expect("Envoy is there");
    sidecar.until(200, "ready").await;
}

#[tokio::test]
async fn a_suspended_agent_keeps_readiness() {
    let sidecar = Builder::new("run-still").start();
    sidecar.until(200, "ready").await;
    // Repeated, so that some stops happen in the middle of a request.
    for _ in 0..10 {
        sidecar.signal(Signal::SIGSTOP);
        tokio::time::sleep(Duration::from_millis(1300)).await;
        sidecar.signal(Signal::SIGCONT);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    // Longer than any timeout of the agent.
    sidecar.signal(Signal::SIGSTOP);
    tokio::time::sleep(Duration::from_secs(15)).await;
    sidecar.signal(Signal::SIGCONT);
    // The first request that completes may be the one that was in flight.
    sidecar.until_data_path_requests(2.0).await;
    assert_eq!(sidecar.ready("").await.status, 200);
    assert_eq!(sidecar.metric(NOT_READY).await, 0.0, "{}", sidecar.log());
}

#[tokio::test]
async fn idle_clients_do_not_block_others() {
    let sidecar = Builder::new("run-idle").start();
    sidecar.until(200, "ready").await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(sidecar.ready_address()).await.expect("the port is open"));
    }
    for _ in 0..20 {
        assert_eq!(sidecar.ready("").await.status, 200);
    }
    let long = format!("GET /healthz/ready HTTP/1.1\r\nHost: x\r\na: {}\r\n\r\n", "x".repeat(64 << 10));
    for (request, status) in [
        (long.as_str(), 431),
        ("GET /healthz/ready HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 413),
        // HTTP/2 gets no response.
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0),
        ("GET //healthz/ready HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("GET /healthz/%72eady HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("GET http://x/healthz/ready HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("POST /healthz/ready HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        ("GET /healthz/live HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ] {
        let answer = caller::send(sidecar.ready_address(), request.as_bytes()).await;
        // The server answers a request that is too long and closes the connection while the request
        // is still being sent, so a RST may discard the response.
        let is_right = answer.status == status || (status == 431 && answer.status == 0);
        assert!(is_right, "{}: {answer:?}", request.lines().next().unwrap_or_default());
    }
    let metrics = sidecar.local("GET /metrics", "").await.text();
    assert!(metrics.contains("connections_closed_total{server=\"ready\",reason=\"evicted\"}"), "{metrics}");
    let known = ["/healthz/ready", "/healthz/live", "other"].map(|path| format!("path=\"{path}\""));
    let mut series = metrics.lines().filter(|line| line.contains("requests_total{server=\"ready\""));
    assert!(series.all(|line| known.iter().any(|path| line.contains(path))), "{metrics}");
}

/// With 64 descriptors, 40 are reserved and clients can use the rest. The poller keeps two
/// descriptors, so no client can make Envoy appear to be down.
#[tokio::test]
async fn clients_cannot_exhaust_the_pollers_descriptors() {
    let theirs = Builder::new("run-few-envoy").start();
    theirs.until(200, "ready").await;
    let admin = format!("unix:{}", theirs.folder.join("state/admin.sock").display());
    let listener = format!("http://{}", envoy::probe_listener(theirs.ip));
    let watching = Builder::bare("run-few")
        .args(&["--no-envoy", "--admin", &admin, "--data-path", &listener])
        .descriptors(64)
        .start_plain();
    watching.until(200, "ready").await;
    let mut idle = Vec::new();
    for _ in 0..10 {
        for address in [watching.ready_address(), watching.local_address()] {
            for _ in 0..50 {
                idle.push(TcpStream::connect(address).await.expect("the port is open"));
            }
        }
        watching.until_data_path_requests(1.0).await;
        assert_eq!(watching.ready("").await.status, 200);
    }
    assert_eq!(watching.metric(NOT_READY).await, 0.0, "{}", watching.log());
}

#[tokio::test]
async fn liveness_with_the_flag() {
    let sidecar = Builder::new("run-live").args(&["--live", "--envoy-restart", "always"]).start();
    sidecar.until(200, "ready").await;
    let live = caller::get(sidecar.ready_address(), "/healthz/live", &[]).await;
    assert_eq!((live.status, live.text().as_str()), (200, "alive\n"));
}
