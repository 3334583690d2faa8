use probe::HandlerKind;

use super::*;

const TABLE: &str = r#"{"podIP": "10.0.0.5", "probers": {
    "/app-health/a/livez": {"httpGet": {"path": "/live?token=secret", "port": 8080,
        "httpHeaders": [{"name": "Authorization", "value": "secret"}]}},
    "/app-health/a/readyz": {"httpGet": {"path": "/ready", "port": 8443, "scheme": "HTTPS"}},
    "/app-health/b/readyz": {"grpc": {"port": 9000, "service": "catalog"}},
    "/app-health/b/startupz": {"grpc": {"port": 9001, "mode": "TLS"}},
    "/app-lifecycle/b/prestopz": {"tcpSocket": {"port": 5432}}
}}"#;

#[test]
fn targets_without_secrets() {
    let probes = declared_probes(TABLE);
    let shown: Vec<_> =
        probes.iter().map(|probe| (probe.kind.word(), probe.target.as_str(), probe.cluster)).collect();
    assert_eq!(
        shown,
        [
            ("livez", "http :8080/live?…", Some("app_health_http")),
            ("readyz", "https :8443/ready", Some("app_health_https")),
            ("readyz", "grpc :9000 catalog", Some("app_health_grpc")),
            ("startupz", "grpc+tls :9001", Some("app_health_grpc_tls")),
            ("prestopz", "tcp :5432", Some("app_health_tcp")),
        ]
    );
    assert!(!format!("{probes:?}").contains("secret"));
}

#[test]
fn each_kind_has_a_cluster_in_the_bootstrap() {
    let bootstrap = include_str!("../../../envoy-config/bootstrap.yaml");
    for kind in HandlerKind::ALL {
        let prober = format!(r#"{{"{}": {{"port": 80}}}}"#, kind.name());
        let table = format!(r#"{{"podIP": "10.0.0.5", "probers": {{"/app-health/a/livez": {prober}}}}}"#);
        let cluster = declared_probes(&table)[0].cluster.expect("a cluster");
        assert!(bootstrap.contains(&format!("- name: {cluster}\n")), "{}: no cluster {cluster}", kind.name());
    }
}

#[test]
fn connections_that_are_used_again_have_no_latency() {
    let reused = declared_probes(&TABLE.replacen('{', "{\"reuseConnections\": true, ", 1));
    assert!(!reused.is_empty() && reused.iter().all(|probe| probe.cluster.is_none()), "{reused:?}");
}

#[test]
fn an_invalid_configuration_has_no_probes() {
    assert_eq!(declared_probes("{"), []);
}
