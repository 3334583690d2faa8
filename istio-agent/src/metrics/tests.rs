use prometheus_client::encoding::text::encode;
use rcgen::date_time_ymd;

use super::*;
use crate::mesh_certificates::Pair;

#[test]
fn the_names_are_those_of_istios_agent() {
    let metrics = Arc::new(Metrics::new());
    let signing = Arc::new(SigningMetrics::default());
    signing.requested(true, Duration::from_millis(20));
    signing.requested(false, Duration::from_millis(30));
    metrics.vm.streams.connection_failures.inc();
    metrics.vm.streams.responses.inc_by(7);
    metrics.scraped.total.inc();
    let dns = DnsMetrics::default();
    dns.requests.inc();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["a".to_owned()]).unwrap();
    params.not_after = date_time_ymd(2001, 2, 3);
    let chain = params.self_signed(&key).unwrap().pem();
    let pair = Some(Pair { chain, key: key.serialize_pem() });
    let (_sender, certificates) = watch::channel(MeshCertificates { pair, roots: None });
    let mut text = String::new();
    encode(&mut text, &registry(&metrics, signing, Some(&dns), certificates)).unwrap();
    for line in [
        "# TYPE istio_agent_dns_requests counter",
        "istio_agent_dns_requests_total 1",
        "istio_agent_dns_upstream_requests_total 0",
        "istio_agent_dns_upstream_failures_total 0",
        "istio_agent_dns_upstream_request_duration_seconds_count 0",
        "# TYPE istio_agent_num_outgoing_requests unknown",
        "istio_agent_num_outgoing_requests{request_type=\"csr\"} 2.0",
        "istio_agent_num_failed_outgoing_requests{request_type=\"csr\"} 1.0",
        "istio_agent_outgoing_latency{request_type=\"csr\"} 50.0",
        "istio_agent_istiod_connection_failures 1.0",
        "istio_agent_istiod_connection_terminations{type=\"error\"} 0.0",
        "istio_agent_envoy_connection_terminations{type=\"error\"} 0.0",
        "istio_agent_xds_proxy_requests 0.0",
        "istio_agent_xds_proxy_responses 7.0",
        "istio_agent_startup_duration_seconds 0.0",
        "istio_agent_scrapes_total 1.0",
        "istio_agent_scrape_failures_total{type=\"application\"} 0.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
    }
    // An expired certificate has a negative number.
    let name = "istio_agent_cert_expiry_seconds{resource_name=\"default\"} -";
    assert!(text.lines().any(|found| found.starts_with(name)), "{text}");
    for metric in shown() {
        let is_metric =
            |line: &str| line.strip_prefix(metric).is_some_and(|rest| rest.starts_with(['{', ' ']));
        assert!(text.lines().any(is_metric), "{metric}:\n{text}");
    }
}

/// Returns the names of Istio's agent in the alerts and in the dashboard.
fn shown() -> Vec<&'static str> {
    let alerts = include_str!("../../../envoy-config/monitoring/rules.yaml");
    let dashboard = include_str!("../../../envoy-config/monitoring/dashboards/mesh.json");
    let words = |text: &'static str| text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let shown: Vec<&str> =
        words(alerts).chain(words(dashboard)).filter(|word| word.starts_with("istio_agent_")).collect();
    assert!(shown.len() > 20, "{shown:?}");
    shown
}
