use super::*;

#[test]
fn selectors_and_groupings_are_found() {
    let expression = "sum by (le, envoy_cluster_name) (rate(envoy_ms_bucket{pod=~\"a{b\\\"}\", le=\"5\"}[5m])) > 0 \
        and on (pod) app_health_agent_ready or vector(0)";
    let series = |metric: &str, labels: &[(&str, Option<&str>)]| Series {
        metric: metric.to_owned(),
        labels: labels.iter().map(|(label, value)| ((*label).to_owned(), value.map(str::to_owned))).collect(),
    };
    let bucket = series("envoy_ms_bucket", &[("le", Some("5")), ("pod", None)]);
    assert_eq!(series_of(expression), [bucket, series("app_health_agent_ready", &[])]);
    let labels: Vec<String> = grouping_labels(expression).into_iter().collect();
    assert_eq!(labels, ["envoy_cluster_name", "le", "pod"]);
}

#[test]
fn samples_have_names_and_labels() {
    let text = "# TYPE a counter\na_total{x=\"1\",y=\"z=2\"} 3\na_total{w=\"\",x=\"3\"} 3\nb 1.5 12\nc{} 1e3\n# EOF\n";
    let found = format!("{:?}", exported(text));
    let expected = r#"{"a_total": {"w": {""}, "x": {"1", "3"}, "y": {"z=2"}}, "b": {}, "c": {}}"#;
    assert_eq!(found, expected);
}
