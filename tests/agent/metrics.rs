//! Tests of the merged metrics through the probe listener: the parts of a real Envoy and of an
//! application.

use std::net::{IpAddr, Ipv4Addr};

use kit::app::{App, answer};
use kit::caller;
use kit::envoy;
use kit::sidecar::Builder;

/// The application's metrics, with a family whose name Envoy uses too.
const APPLICATION: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\n\r\n\
    # TYPE envoy_server_live gauge\nenvoy_server_live{mine=\"yes\"} 1\n# TYPE shop_orders counter\nshop_orders_total 3 1.5 # {} 1\n# EOF\n";

#[tokio::test]
async fn metrics_of_agent_envoy_and_application_are_merged() {
    let app = App::start(IpAddr::V4(Ipv4Addr::LOCALHOST), answer(APPLICATION)).await;
    let target = format!("{}/metrics", app.port());
    let sidecar =
        Builder::new("metrics").args(&["--metrics-target", &target, "--metrics-target", "15020"]).start();
    sidecar.until(200, "ready").await;
    let answer = caller::probe(envoy::probe_listener(sidecar.ip), "/stats/prometheus").await;
    let text = answer.text();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(answer.complete);
    for line in [
        "app_health_agent_ready 1",
        "app_health_agent_config_rejected{key=\"--metrics-target\"} 1",
        "# TYPE app_health_agent_requests_total counter",
        "envoy_server_live{mine=\"yes\"} 1",
        "# TYPE shop_orders_total counter",
        "shop_orders_total 3 1500",
        "app_health_agent_duplicate_families 1",
        "app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert_eq!(text.matches("# TYPE envoy_server_live ").count(), 1);
    assert!(!text.contains("# EOF"));
    let filtered =
        caller::probe(envoy::probe_listener(sidecar.ip), "/stats/prometheus?filter=^server.live$&reset")
            .await;
    let text = filtered.text();
    assert!(text.lines().any(|line| line.starts_with("envoy_server_uptime")), "not filtered: {text}");
}

/// Port 15020 is that of Istio's agent, whose clients find what they need. Nothing there ends the
/// sidecar.
#[tokio::test]
async fn paths_of_istios_agent() {
    let sidecar = Builder::new("istio-paths").start();
    sidecar.until(200, "ready").await;
    let listener = envoy::probe_listener(sidecar.ip);
    for path in ["/metrics", "/metrics?usedonly", "/stats/prometheus"] {
        let answer = caller::probe(listener, path).await;
        let text = answer.text();
        let up = "\napp_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1\n";
        assert!(answer.status == 200 && text.contains(up), "{path}: {text}");
    }
    for (request, port) in [
        ("GET /healthz/ready", "GET /healthz/ready on the --ready-address"),
        ("POST /quitquitquit", "POST /quitquitquit on the --local-address"),
        ("GET /quitquitquit?x", "POST /quitquitquit on the --local-address"),
        ("POST /metrics", ""),
        ("GET /metrics/", ""),
        ("GET //quitquitquit", ""),
    ] {
        let answer =
            caller::send(listener, format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
        assert_eq!(answer.status, 404, "{request}: {answer:?}");
        assert_eq!(answer.text().contains(port) && !answer.text().is_empty(), !port.is_empty(), "{request}");
    }
    assert_eq!(sidecar.ready("").await.status, 200, "the agent still runs");
}
