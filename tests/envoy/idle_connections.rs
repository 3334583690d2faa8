//! Tests that clients which hold every connection of the probe listener do not block kubelet, through
//! a real Envoy that knows the node's address.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use envoy_bootstrap::bootstrap::Bootstrap;
use kit::app::counted::{CountedApp, Habit};
use kit::envoy::Version;
use kit::load::{ask, connect, kubelet_request};
use kit::net;
use kit::not_tested;
use kit::oracle::{Oracle, ProbeResult, Question};
use kit::pod::{self, Pod};
use kit::wait;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// More than the 384 connections that the listener accepts of clients other than the node.
const CONNECTIONS: usize = 1000;
/// File descriptors that this process and Envoy need.
const DESCRIPTORS: u64 = 4096;
const PROBES: u64 = 20;
/// The pause of a client before it opens a connection that Envoy has closed again.
const PAUSE: Duration = Duration::from_millis(500);

/// Raises the limit of file descriptors, also that of Envoys started afterwards.
fn has_descriptors() -> bool {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    if hard < DESCRIPTORS {
        not_tested::report("1000 idle connections", "needs 4096 file descriptors");
        return false;
    }
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(DESCRIPTORS), hard).expect("below the hard limit");
    true
}

/// Keeps connections open that send nothing; one that Envoy closes is opened again.
fn idle_clients(source: IpAddr, listener: SocketAddr) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..CONNECTIONS {
        clients.spawn(async move {
            loop {
                if let Ok(mut stream) = connect(Some(source), listener).await {
                    let _ = stream.read(&mut [0; 1]).await;
                }
                sleep(PAUSE).await;
            }
        });
    }
    clients
}

/// Returns the values of the counter of results.
async fn results(pod: &Pod) -> BTreeMap<String, u64> {
    let text = pod.envoy.admin("/stats/prometheus?filter=app_health_probes_total").await.expect("metrics");
    let samples = text.lines().filter_map(|line| line.strip_prefix("app_health_probes_total"));
    let samples = samples.filter_map(|line| line.rsplit_once(' '));
    samples.map(|(labels, value)| (labels.to_owned(), value.parse().expect("a number"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_of_others_do_not_block_the_node() {
    if !has_descriptors() {
        return;
    }
    let ip = net::loopback();
    let (healthy, failing) =
        (CountedApp::start(ip, Habit::status(200)), CountedApp::start(ip, Habit::status(500)));
    let handler = |app: &CountedApp| json!({"httpGet": {"port": app.port()}});
    let table = pod::with_long_timeouts(json!({
        "/app-health/healthy/readyz": handler(&healthy),
        "/app-health/failing/readyz": handler(&failing),
    }));
    let node = net::loopback();
    let bootstrap = Bootstrap { node: vec![node], ..Pod::bootstrap("idle", ip, &table) };
    let pod = Pod::with("idle", Version::Newest, &bootstrap).await;
    let listener = pod.listener;
    let clients = idle_clients(net::loopback(), listener);
    pod.envoy.until_stat("connection_limit.app_health.active_connections", 384).await;

    let path = |container: &str| format!("/app-health/{container}/readyz");
    let oracle = Oracle::start();
    for (container, status, result) in
        [("healthy", 200, ProbeResult::Success), ("failing", 500, ProbeResult::Failure)]
    {
        for probe in 0..PROBES {
            let request = kubelet_request(listener, &path(container));
            let answer = wait::until_some(
                || format!("an answer of {container} to probe {probe}"),
                // On a busy machine, Envoy may close a connection whose request it has not read for 5 s.
                async || Some(ask(Some(node), listener, &request).await).filter(|answer| answer.status != 0),
            );
            let answer = answer.await;
            assert_eq!(answer.status, status, "{container}, probe {probe}: {answer:?}");
        }
        // kubelet's own prober connects from 127.0.0.1, as the Pod itself does.
        let handler = json!({"httpGet": {"port": listener.port(), "path": path(container)}});
        let question = Question::once(ip, Duration::from_secs(60), handler);
        assert_eq!(oracle.ask(question).await.expect("a result").result, result, "{container}");
    }
    // The connections of others are still all taken.
    let refused = pod.envoy.stat("connection_limit.app_health.limited_connections").await;
    assert!(refused.is_some_and(|count| count > 0), "{refused:?}");
    assert_eq!(pod.envoy.stat("connection_limit.app_health_node.limited_connections").await, Some(0));

    let count = |container: &str, reason: &str| {
        (format!("{{container=\"{container}\",kind=\"readyz\",reason=\"{reason}\"}}"), PROBES + 1)
    };
    let expected = BTreeMap::from([count("healthy", "ok"), count("failing", "application")]);
    let mut counted = results(&pod).await;
    counted.retain(|_, value| *value > 0);
    assert_eq!(counted, expected, "both chains count in the same series");
    drop(clients);
    pod.envoy.stop().await;
}

#[tokio::test]
async fn both_chains_share_one_vm() {
    if pod::is_native() {
        return;
    }
    let mut active = Vec::new();
    for (name, node) in [("one-chain", Vec::new()), ("two-chains", vec![net::loopback()])] {
        let ip = net::loopback();
        let app = CountedApp::start(ip, Habit::status(200));
        let table =
            json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}, "timeoutSeconds": 60}});
        let bootstrap = Bootstrap { node: node.clone(), ..Pod::bootstrap(name, ip, &table) };
        let pod = Pod::with(name, Version::Newest, &bootstrap).await;
        let request = kubelet_request(pod.listener, "/app-health/app/readyz");
        for client in [net::loopback()].iter().chain(&node) {
            assert_eq!(ask(Some(*client), pod.listener, &request).await.status, 200, "{client}");
        }
        active.push(pod.envoy.stat("wasm.envoy.wasm.runtime.v8.active").await.expect("a number"));
        pod.envoy.stop().await;
    }
    assert_eq!(active[0], active[1]);
}
