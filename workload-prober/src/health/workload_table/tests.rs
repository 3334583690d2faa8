use std::time::Duration;

use super::super::HealthStatus;
use super::super::history::History;
use super::*;
use workload_health::{HealthReason, Outcome, Verdict};

fn snapshot(probe: Value) -> HealthSnapshot {
    let status = HealthStatus {
        verdict: Verdict {
            state: State::Healthy,
            reason: HealthReason::ProbeSucceeded,
            message: "<b>".to_owned(),
            generation: 3,
        },
        since: Duration::from_secs(7),
        last_probe: Some(Duration::from_secs(9)),
        interval: None,
        verdict_due: None,
    };
    let mut history = History::default();
    for second in [8, 9] {
        history.probe_ended(&Outcome::Healthy, Duration::from_secs(second), Duration::ZERO);
    }
    HealthSnapshot { status, probe: Some(probe), history }
}

#[test]
fn the_state_and_the_last_results() {
    let table = workload_table(&snapshot(json!({"tcpSocket": {"port": 80}})));
    let value = |name: &str| {
        let row = table.rows.iter().find(|row| row[0] == Cell::text(name));
        row.unwrap_or_else(|| panic!("no row {name}: {table:?}"))[1].clone()
    };
    assert_eq!(value("state"), Cell::status(Tone::Good, State::Healthy.word()));
    assert_eq!(value("since"), Cell::At { at: Duration::from_secs(7) });
    assert_eq!(value("last probe"), Cell::At { at: Duration::from_secs(9) });
    let reason = HealthReason::ProbeSucceeded.word().to_owned();
    assert_eq!(value("last results"), Cell::Results { results: vec![(reason, 2, true)] });
    assert_eq!(value("failures"), Cell::text("0 of 2"));
    assert_eq!(value("probe"), Cell::text(r#"{"tcpSocket":{"port":80}}"#));
}

#[test]
fn the_probe_is_shown_without_secrets() {
    for (probe, shown) in [
        (
            json!({"httpGet": {"path": "/ready?token=secret", "port": 80}}),
            json!({"httpGet": {"path": "/ready?…", "port": 80}}),
        ),
        (
            json!({"exec": {"command": ["check", "--password", "secret"]}}),
            json!({"exec": {"command": ["check", "…"]}}),
        ),
        (json!({"exec": {"command": ["check"]}}), json!({"exec": {"command": ["check"]}})),
    ] {
        assert_eq!(without_secrets(&probe), shown);
    }
}
