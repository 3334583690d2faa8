use super::*;

fn labels<const N: usize>(names: [&str; N]) -> std::collections::BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn selectors_and_groupings_are_found() {
    let expression = "sum by (le, envoy_cluster_name) (rate(envoy_ms_bucket{pod=~\"a{b\\\"}\", le=\"5\"}[5m])) > 0 \
        and on (pod) app_health_agent_ready or vector(0)";
    let series = |metric: &str, labels| Series { metric: metric.to_owned(), labels };
    let expected =
        [series("envoy_ms_bucket", labels(["le", "pod"])), series("app_health_agent_ready", labels([]))];
    assert_eq!(series_of(expression), expected);
    assert_eq!(grouping_labels(expression), labels(["envoy_cluster_name", "le", "pod"]));
}

#[test]
fn samples_have_names_and_labels() {
    let text =
        "# TYPE a counter\na_total{x=\"1\",y=\"z=2\"} 3\na_total{w=\"1\"} 3\nb 1.5 12\nc{} 1e3\n# EOF\n";
    let found = exported(text);
    assert_eq!(found["a_total"], labels(["w", "x", "y"]));
    assert_eq!(found["b"], labels([]));
    assert_eq!(found["c"], labels([]));
    assert_eq!(found.len(), 3);
}
