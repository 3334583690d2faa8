use super::*;

#[test]
fn reads_own_metrics_only() {
    let text = "# TYPE app_health_probes_total counter\n\
        app_health_probes_total{container=\"app\",kind=\"readyz\",reason=\"refused\"} 31\n\
        envoy_cluster_upstream_cx_total{cluster=\"a\"} 7\n\
        app_health_unknown_probes_total 2\n\
        app_health_broken{ x\n";
    let found: Vec<Sample<'_>> = samples(text).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        (found[0].name, found[0].label("reason"), found[0].value),
        ("app_health_probes_total", "refused", 31)
    );
    assert_eq!((found[1].label("reason"), found[1].value), ("", 2));
}
