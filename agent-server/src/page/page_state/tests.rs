use super::super::envoy_stats::EnvoyStats;
use super::*;
use envoy_bootstrap::declared_probe::declared_probes;

const TABLE: &str = r#"{"podIP": "10.0.0.5", "probers": {
    "/app-health/app/livez": {"httpGet": {"path": "/live", "port": 8080}},
    "/app-health/app/readyz": {"tcpSocket": {"port": 5432}}
}}"#;

const STATS: &str = r#"
app_health_probes_total{container="app",kind="livez",reason="application"} 1
app_health_probes_total{container="app",kind="livez",reason="method"} 5
app_health_probes_total{container="app",kind="livez",reason="ok"} 2
app_health_probe_success{container="app",kind="livez"} 0
app_health_probes_total{container="app",kind="readyz",reason="ok"} 0
app_health_probe_success{container="app",kind="readyz"} 0
envoy_cluster_upstream_cx_length_ms{envoy_cluster_name="app_health_http",quantile="0.5"} 1.05
envoy_cluster_upstream_cx_length_ms{envoy_cluster_name="app_health_http",quantile="0.99"} 11.5
"#;

fn history(texts: &[&str]) -> ProbeHistory {
    let mut history = ProbeHistory::default();
    for text in texts {
        history.update(EnvoyStats::parse(text), 1);
    }
    history
}

/// The state of an Envoy that is ready.
fn state(declared: &str, probes: Result<&ProbeHistory, &'static str>) -> PageState {
    let snapshot = Snapshot {
        phase: readiness::Phase::Ready,
        since: Duration::ZERO,
        epoch: 1,
        envoy: Some("1.40.0".to_owned()),
        pending: Vec::new(),
        met: vec![(readiness::Condition::Live, Duration::from_secs(2))],
        body: bytes::Bytes::new(),
    };
    PageState::new(Sources {
        snapshot: &snapshot,
        stale: None,
        processes: &[],
        filter: None,
        declared: &declared_probes(declared),
        probes,
        configuration: &Arc::from([("drain", "5 to 25 s".to_owned())]),
        workload: Vec::new(),
    })
}

fn probe_rows(state: &PageState) -> Vec<Vec<Cell>> {
    state.tables.iter().find(|table| table.id == "probes").expect("the table").rows.clone()
}

#[test]
fn a_failing_probe() {
    let before = STATS.replace("reason=\"application\"} 1", "reason=\"application\"} 0");
    let state = state(TABLE, Ok(&history(&[&before, STATS])));
    assert_eq!(state.summary, "Envoy is ready, and 1 of 2 probes fails.");
    assert_eq!(state.tone, Tone::Bad);
    let rows = probe_rows(&state);
    assert_eq!(
        rows[0],
        [
            Cell::text("app/livez"),
            Cell::text("http :8080/live"),
            Cell::status(Tone::Bad, "fails"),
            Cell::text("application"),
            Cell::text("1.1 / 11.5 ms"),
            Cell::Results { results: vec![("application".to_owned(), 1, false)] },
            Cell::text("1 of 3 (33.3 %)"),
        ],
        "malformed requests do not count"
    );
    assert_eq!(rows[1][2], Cell::status(Tone::Plain, "no result yet"));
    assert_eq!(rows[1][6], Cell::text("–"));
}

#[test]
fn without_statistics_the_declared_probes_are_shown() {
    let state = state(TABLE, Err("Envoy does not run"));
    assert_eq!(state.tone, Tone::Good);
    let probes = &state.tables[1];
    assert_eq!((probes.rows.len(), probes.note.as_str()), (2, "There are no results: Envoy does not run."));
}

#[test]
fn probes_of_an_external_envoy_have_no_target() {
    let rows = probe_rows(&state("{}", Ok(&history(&[STATS]))));
    assert_eq!(rows[0][..2], [Cell::text("app/livez"), Cell::text("–")]);
}

#[test]
fn the_number_of_rows_is_limited() {
    let lines = (0..500)
        .map(|number| format!("app_health_probe_success{{container=\"c{number:03}\",kind=\"livez\"}} 1\n"));
    let state = state("{}", Ok(&history(&[&lines.collect::<String>()])));
    assert_eq!(probe_rows(&state).len(), PROBES);
    assert!(state.tables[1].note.ends_with(" 300 more probes are not shown."), "{}", state.tables[1].note);
}

#[test]
fn every_row_has_all_columns() {
    for table in state(TABLE, Ok(&history(&[STATS]))).tables {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.id);
    }
}
