//! Tests of `--reuse-connections` through a real Envoy: probes use a connection to the application
//! again, and a connection that the application closes in the meantime changes no verdict.

use std::net::IpAddr;

use envoy_bootstrap::bootstrap::Bootstrap;
use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::{self, Tls};
use kit::app::{App, Step};
use kit::caller;
use kit::envoy::Version;
use kit::net;
use kit::pod::{self, Pod};
use serde_json::{Value, json};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

async fn start(name: &str, ip: IpAddr, probers: &Value) -> Pod {
    let probers = pod::with_long_timeouts(probers.clone());
    let bootstrap = Bootstrap { reuse_connections: true, ..Pod::bootstrap(name, ip, &probers) };
    Pod::with(name, Version::Newest, &bootstrap).await
}

/// Waits until Envoy has this many destinations in a cluster. It adds one shortly after the first
/// request to it; requests before that get another connection pool.
async fn until_known(pod: &Pod, cluster: &str, destinations: u64) {
    pod.envoy.until_stat(&format!("cluster.app_health_reuse_{cluster}.membership_total"), destinations).await;
}

/// Returns the steps that answer every request on one connection.
fn steady() -> Vec<Step> {
    vec![Step::Read, Step::Write(OK.to_vec()), Step::Repeat]
}

/// Returns the steps that answer one request and close the connection when the next one arrives, as
/// if the application had closed it while that request was under way.
fn stale() -> Vec<Step> {
    vec![Step::Read, Step::Write(OK.to_vec()), Step::Read]
}

fn prober(kind: &str, port: u16) -> Value {
    match kind {
        "tcp" => json!({"tcpSocket": {"port": port}}),
        scheme => json!({"httpGet": {"port": port, "scheme": scheme}}),
    }
}

async fn application(kind: &str, ip: IpAddr, steps: Vec<Step>) -> App {
    match kind {
        "HTTPS" => App::start_tls(ip, Tls::default().acceptor(), steps).await,
        _ => App::start(ip, steps).await,
    }
}

#[tokio::test]
async fn probes_share_a_connection() {
    tls::install_provider();
    let ip = net::loopback();
    for (kind, connections) in [("HTTP", 1), ("HTTPS", 1), ("tcp", 3)] {
        let app = application(kind, ip, steady()).await;
        let table = json!({"/app-health/app/readyz": prober(kind, app.port())});
        let pod = start(&format!("reuse-{kind}"), ip, &table).await;
        for _ in 0..3 {
            assert_eq!(pod.probe("app").await.status, 200, "{kind}");
            if kind != "tcp" {
                until_known(&pod, &kind.to_ascii_lowercase(), 1).await;
            }
        }
        let seen = app.seen_at_least(connections).await;
        assert_eq!(seen.len(), connections, "{kind}: {seen:?}");
        if kind != "tcp" {
            let text = String::from_utf8_lossy(&seen[0].bytes).into_owned();
            assert_eq!(text.matches("GET / HTTP/1.1\r\n").count(), 3, "{text}");
            let lower = text.to_ascii_lowercase();
            assert!(!lower.contains("connection:") && !lower.contains("x-envoy"), "{text}");
        }
        pod.envoy.stop().await;
    }
}

#[tokio::test]
async fn a_stale_connection_changes_no_verdict() {
    tls::install_provider();
    let ip = net::loopback();
    for kind in ["HTTP", "HTTPS"] {
        let app = application(kind, ip, stale()).await;
        let table = json!({"/app-health/app/readyz": prober(kind, app.port())});
        let pod = start(&format!("reuse-stale-{kind}"), ip, &table).await;
        for probe in 1..=4 {
            assert_eq!(pod.probe("app").await.status, 200, "{kind}: probe {probe}");
            until_known(&pod, &kind.to_ascii_lowercase(), 1).await;
        }
        assert_eq!(
            app.seen_at_least(4).await.len(),
            4,
            "{kind}: the first serves one probe, as do the others"
        );
        pod.envoy.stop().await;
    }
}

#[tokio::test]
async fn an_application_that_never_answers_fails_after_one_more_request() {
    let ip = net::loopback();
    let app = App::start(ip, vec![Step::Read]).await;
    let table = json!({"/app-health/app/readyz": prober("HTTP", app.port())});
    let pod = start("reuse-closed", ip, &table).await;
    let answer = pod.probe("app").await;
    assert_eq!((answer.status, answer.word().as_str()), (520, "closed"), "{answer:?}");
    assert_eq!(app.seen_at_least(2).await.len(), 2);
    pod.envoy.stop().await;
}

#[tokio::test]
async fn a_hook_is_sent_once_over_a_connection_of_its_own() {
    tls::install_provider();
    let ip = net::loopback();
    for kind in ["HTTP", "HTTPS"] {
        let app = application(kind, ip, stale()).await;
        let silent = application(kind, ip, vec![Step::Read]).await;
        let table = json!({
            "/app-health/app/readyz": prober(kind, app.port()),
            "/app-lifecycle/app/prestopz": prober(kind, app.port()),
            "/app-lifecycle/silent/prestopz": prober(kind, silent.port()),
        });
        let pod = start(&format!("reuse-hook-{kind}"), ip, &table).await;
        assert_eq!(pod.probe("app").await.status, 200, "{kind}");
        let hook = caller::probe(pod.listener, "/app-lifecycle/app/prestopz").await;
        assert_eq!(hook.status, 200, "{kind}: {hook:?}");
        assert_eq!(app.seen_at_least(2).await.len(), 2, "{kind}");
        let failed = caller::probe(pod.listener, "/app-lifecycle/silent/prestopz").await;
        assert_eq!(failed.status, 0, "{kind}: a failed hook gets no response: {failed:?}");
        assert_eq!(silent.seen().len(), 1, "{kind}");
        pod.envoy.stop().await;
    }
}

#[tokio::test]
async fn grpc_checks_share_a_connection_and_survive_a_stale_one() {
    tls::install_provider();
    let ip = net::loopback();
    for (mode, cluster) in [("PLAINTEXT", "grpc"), ("TLS", "grpc_tls")] {
        let acceptor = || (mode == "TLS").then(|| Tls::with_alpn(&["h2"]).acceptor());
        let steady = GrpcApp::scripted(ip, acceptor(), GrpcAnswer::serving(1)).await;
        let stale = GrpcApp::limited(ip, acceptor(), GrpcAnswer::serving(1), 1).await;
        let never = GrpcApp::limited(ip, acceptor(), GrpcAnswer::serving(1), 0).await;
        let grpc = |port: u16| json!({"grpc": {"port": port, "mode": mode}});
        let table = json!({
            "/app-health/steady/readyz": grpc(steady.port()),
            "/app-health/stale/readyz": grpc(stale.port()),
            "/app-health/never/readyz": grpc(never.port()),
        });
        let pod = start(&format!("reuse-grpc-{mode}"), ip, &table).await;
        let connections = async |cluster: &str| {
            pod.envoy.stat(&format!("cluster.app_health_{cluster}.upstream_cx_total")).await.unwrap_or(0)
        };
        let reuse = format!("reuse_{cluster}");
        // The number of connections of four probes, those in the shared pool and the others. Envoy
        // closes one after the first request that finds it closed.
        for (destinations, container, status, shared, others) in
            [(1, "steady", 200, 1, 0), (2, "stale", 200, 2, 2), (3, "never", 520, 4, 4)]
        {
            let before = (connections(&reuse).await, connections(cluster).await);
            for probe in 1..=4 {
                let answer = pod.probe(container).await;
                assert_eq!(answer.status, status, "{mode} {container}, probe {probe}: {answer:?}");
                until_known(&pod, cluster, destinations).await;
            }
            let after = (connections(&reuse).await, connections(cluster).await);
            assert_eq!((after.0 - before.0, after.1 - before.1), (shared, others), "{mode} {container}");
        }
        pod.envoy.stop().await;
    }
}
