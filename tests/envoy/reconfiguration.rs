//! Tests through a real Envoy whose probe listener is replaced while it runs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use kit::app::{App, answer};
use kit::caller;
use kit::envoy::{self, Envoy, Version};
use kit::net;
use kit::pod::{Pod, with_long_timeouts};
use kit::wait;
use kit::watched_listener::WatchedListener;
use serde_json::{Value, json};
use tokio::net::TcpStream;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Returns the values of the filter's series in Prometheus' format.
async fn series(envoy: &Envoy) -> BTreeMap<String, u64> {
    let text = envoy.admin("/stats/prometheus?filter=app_health").await.expect("a response");
    let samples = text.lines().filter(|line| line.starts_with("app_health_"));
    let pair = |line: &str| line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().ok()));
    samples.filter_map(pair).filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Starts an Envoy with a listener that can be replaced.
async fn start(name: &str, ip: IpAddr, probers: &Value) -> (Envoy, WatchedListener) {
    let folder = envoy::folder(name);
    let mut config =
        serde_json::from_str(&Pod::bootstrap(name, ip, &json!({})).render()).expect("a bootstrap is JSON");
    let listener = WatchedListener::of(&mut config, &folder);
    listener.write(0, ip, probers);
    // Envoy destroys a replaced configuration after its drain time.
    let envoy = Envoy::start_with(Version::Newest, folder, &config, 1, &["--drain-time-s", "1"]).await;
    (envoy, listener)
}

/// A rejected configuration is counted and changes nothing. A new one is used, and the metrics keep
/// their values, also those of probers that it no longer has.
#[tokio::test]
async fn metrics_keep_their_values_when_the_configuration_changes() {
    let ip = net::loopback();
    let app = App::start(ip, answer(OK)).await;
    let http = json!({"httpGet": {"port": app.port()}});
    let first = with_long_timeouts(json!({
        "/app-health/app/readyz": http,
        "/app-health/dead/livez": {"httpGet": {"port": 1}},
    }));
    let second = with_long_timeouts(json!({
        "/app-health/app/readyz": http,
        "/app-health/new/startupz": http,
        "/app-health/new/livez": http,
    }));
    let (envoy, listener) = start("reconfigured", ip, &first).await;
    let address = envoy::probe_listener(ip);
    let probe = async |path: &str| caller::probe(address, path).await.status;
    wait::until("the listener is there", async || TcpStream::connect(address).await.is_ok()).await;
    assert_eq!(probe("/app-health/app/readyz").await, 200);
    assert_eq!(probe("/app-health/dead/livez").await, 502);

    listener.write(1, ip, &json!({"/app-health/app/readyz": {"httpGet": {"port": 70_000}}}));
    envoy.until_stat("listener_manager.lds.update_rejected", 1).await;
    assert_eq!(probe("/app-health/app/readyz").await, 200);
    let ok = "app_health_probes_total{container=\"app\",kind=\"readyz\",reason=\"ok\"}";
    wait::until("the rejection is counted", async || {
        probe("/app-health/app/readyz").await;
        series(&envoy).await.get("app_health_config_rejected_total{}").is_some_and(|count| *count > 0)
    })
    .await;
    let before = series(&envoy).await[ok];

    listener.write(2, ip, &second);
    wait::until("the second configuration is used", async || probe("/app-health/new/livez").await == 200)
        .await;
    assert_eq!(probe("/app-health/dead/livez").await, 404);
    assert_eq!(probe("/app-health/app/readyz").await, 200);
    envoy.until_stat("listener_manager.total_filter_chains_draining", 0).await;
    envoy.until_stat("listener_manager.total_listeners_draining", 0).await;
    let after = series(&envoy).await;
    for (name, value) in [
        (ok, before + 1),
        ("app_health_probe_success{container=\"app\",kind=\"readyz\"}", 1),
        ("app_health_probes_total{container=\"dead\",kind=\"livez\",reason=\"refused\"}", 1),
        ("app_health_probe_success{container=\"dead\",kind=\"livez\"}", 0),
        ("app_health_probes_total{container=\"new\",kind=\"startupz\",reason=\"ok\"}", 0),
        ("app_health_probe_success{container=\"new\",kind=\"startupz\"}", 0),
        ("app_health_probe_success{container=\"new\",kind=\"livez\"}", 1),
    ] {
        assert_eq!(after.get(name), Some(&value), "{name}: {after:#?}");
    }
    assert!(after["app_health_config_rejected_total{}"] > 0);
    envoy.stop().await;
}

/// A listener that is removed and added again starts with kubelet's initial results.
#[tokio::test]
async fn a_listener_that_is_added_again_has_initial_results() {
    let ip = net::loopback();
    let livez = "app_health_probe_success{container=\"app\",kind=\"livez\"}";
    let table = with_long_timeouts(json!({"/app-health/app/livez": {"httpGet": {"port": 1}}}));
    let (envoy, listener) = start("added-again", ip, &table).await;
    let address = envoy::probe_listener(ip);
    wait::until("the listener is there", async || TcpStream::connect(address).await.is_ok()).await;
    assert_eq!(caller::probe(address, "/app-health/app/livez").await.status, 502);
    assert_eq!(series(&envoy).await.get(livez), Some(&0));

    listener.remove(1);
    wait::until("the listener is gone", async || TcpStream::connect(address).await.is_err()).await;
    envoy.until_stat("listener_manager.total_listeners_draining", 0).await;
    listener.write(2, ip, &table);
    wait::until("the listener is there", async || TcpStream::connect(address).await.is_ok()).await;
    assert_eq!(series(&envoy).await.get(livez), Some(&1));
    envoy.stop().await;
}
