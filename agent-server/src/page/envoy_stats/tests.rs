use super::*;

const TEXT: &str = r#"# TYPE app_health_probes_total counter
app_health_probes_total{container="app",kind="readyz",reason="ok"} 7
app_health_probes_total{container="app",kind="readyz",reason="refused"} 3
app_health_probes_total{container="app",kind="readyz",reason="of another version"} 9
app_health_probe_success{container="app",kind="readyz"} 0
app_health_unknown_probes_total{} 2
app_health_config_rejected_total{} 1
envoy_cluster_upstream_cx_length_ms{envoy_cluster_name="app_health_http",quantile="0.5"} 1.0500000000000000444
envoy_cluster_upstream_cx_length_ms{envoy_cluster_name="app_health_http",quantile="0.99"} 11.5
envoy_cluster_upstream_cx_length_ms{envoy_cluster_name="app_health_tcp",quantile="0.5"} nan
"#;

#[test]
fn statistics_of_envoy() {
    let stats = EnvoyStats::parse(TEXT);
    let name = ProbeName { container: "app".to_owned(), kind: "readyz".to_owned() };
    let reasons = BTreeMap::from([(Reason::Ok, 7), (Reason::Refused, 3)]);
    assert_eq!(stats.probes, BTreeMap::from([(name, ProbeCounters { reasons, success: Some(false) })]));
    assert_eq!((stats.unknown, stats.rejected), (2, 1));
    assert_eq!(stats.lengths["app_health_http"], Length { median: Some(1.05), p99: Some(11.5) });
    assert_eq!(stats.lengths["app_health_tcp"], Length::default(), "no connection yet");
}

#[test]
fn labels_are_unescaped() {
    let line = r#"app_health_probe_success{container="a\"},\\\n{<b>",kind="livez"} 1"#;
    let stats = EnvoyStats::parse(line);
    let name = stats.probes.keys().next().expect("a probe");
    assert_eq!((name.container.as_str(), name.kind.as_str()), ("a\"},\\\n{<b>", "livez"));
}

#[test]
fn malformed_lines_are_ignored() {
    for line in ["", "{", "name{", "name{a", "name{a=\"", "name{a=\"b\\", "name{a=\"b\"", "name{} ä", "é{\"}"]
    {
        assert_eq!(EnvoyStats::parse(line), EnvoyStats::default(), "{line}");
    }
}

#[test]
fn the_query_is_a_valid_path() {
    assert!(PATH.parse::<hyper::Uri>().is_ok_and(|uri| uri.path() == "/stats/prometheus"));
}
