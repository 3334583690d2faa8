use super::*;
use readiness::Dynamic;
use readiness::{Channel, Observation, Policy, Readiness};

#[test]
fn snapshots_update_gauges_and_counters() {
    let metrics = Metrics::new();
    let policy = Policy { dynamic: Dynamic::Off, data_path: false, child: true, drain_keeps_ready: false };
    let mut ready = Readiness::new(policy, Duration::ZERO);
    let mut tell = |observation: Observation, seconds: u64| {
        let (before, now) = (ready.snapshot().clone(), Duration::from_secs(seconds));
        ready.observe(ready.generation(), observation, now);
        metrics.observe(&before, ready.snapshot(), now);
    };
    tell(Observation::Started, 1);
    tell(Observation::Accepted(Channel::Admin), 2);
    let text = metrics.encode();
    assert!(text.contains("app_health_agent_ready 0\n"), "{text}");
    assert!(text.contains("app_health_agent_condition{condition=\"process\"} 1\n"), "{text}");
    tell(Observation::Exited, 3);
    let text = metrics.encode();
    assert!(text.contains("app_health_agent_condition{condition=\"process\"} 0\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn counters() {
    let metrics = Metrics::new();
    metrics.servers.request("ready", "/healthz/ready", 200);
    metrics.servers.request("ready", "other", 404);
    metrics.servers.connection_closed("ready", "evicted");
    metrics.envoy_exited(ExitCause::Unexpected(ExitReason::Signal(9)));
    metrics.envoy_exited(ExitCause::Hung);
    metrics.envoy_exited(ExitCause::Requested);
    metrics.config_rejected("--metrics-target");
    metrics.admin_request(Err(RequestFailure::Timeout), Duration::from_secs(5));
    let open = metrics.servers.connection("ready");
    let text = metrics.encode();
    for line in [
        "app_health_agent_requests_total{server=\"ready\",path=\"other\",code=\"404\"} 1",
        "app_health_agent_connections_closed_total{server=\"ready\",reason=\"evicted\"} 1",
        "app_health_agent_envoy_exits_total{cause=\"signal\"} 1",
        "app_health_agent_envoy_exits_total{cause=\"hung\"} 1",
        "app_health_agent_envoy_exits_total{cause=\"requested\"} 1",
        "app_health_agent_config_rejected{key=\"--metrics-target\"} 1",
        "app_health_agent_admin_requests_total{outcome=\"timeout\"} 1",
        "app_health_agent_connections{server=\"ready\"} 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    drop(open);
    assert!(metrics.encode().contains("app_health_agent_connections{server=\"ready\"} 0"));
    assert!(!metrics.encode().contains("resident_memory_bytes 0"), "the kernel reports the usage");
}
