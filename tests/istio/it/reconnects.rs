//! istiod closes each connection when it reaches its age, half an hour by default: Envoy notices nothing.

use kit::{net, wait};

use istio_tests::istiod::Istiod;
use istio_tests::pod_sidecar::PodSidecar;

/// Connections that istiod closes during the test.
const CLOSED: f64 = 3.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn envoy_does_not_notice_that_istiod_closes_connections() {
    let mut istiod = Istiod::start_with_auto_mtls("istio-reconnects").await;
    istiod.kill();
    // After this age, a connection is closed within 10 s.
    istiod.arguments = vec!["--keepaliveMaxServerConnectionAge".to_owned(), "1s".to_owned()];
    istiod.start_process(&[]).await;
    let pod = PodSidecar::start(&istiod, net::loopback(), &[]);
    pod.until_ready().await;
    let opened = metric(&pod, "app_health_agent_xds_upstream_streams_total").await;
    let what = || format!("istiod closes connections:\n{}", pod.log());
    let is_reconnected =
        async || metric(&pod, "app_health_agent_xds_upstream_streams_total").await >= opened + CLOSED;
    wait::until_or(what, is_reconnected).await;
    pod.until_ready().await;
    assert_eq!(pod.log().matches("Envoy opened an xDS stream").count(), 1, "{}", pod.log());
    // Each stream that ends counts.
    for name in ["cluster_manager.cds.update_failure", "listener_manager.lds.update_failure"] {
        assert_eq!(pod.admin(&format!("/stats?filter={name}$")).await, format!("{name}: 0\n"));
    }
}

async fn metric(pod: &PodSidecar, name: &str) -> f64 {
    let page = pod.metrics().await;
    let found = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no {name}:\n{page}"))
}
