use std::time::Duration;

use serde_json::{Value, json};

use super::{HealthReport, Hello};
use crate::health_state::State;

fn report() -> HealthReport {
    HealthReport {
        epoch: "9f0c".into(),
        generation: 7,
        state: State::Unhealthy,
        reason: "HttpStatus".into(),
        message: "HTTP status 503".into(),
        since_ms: 41_200,
        last_probe_ago_ms: Some(1_200),
        interval_ms: Some(11_000),
        verdict_within_ms: None,
    }
}

fn as_json() -> Value {
    json!({"epoch": "9f0c", "generation": 7, "state": "Unhealthy", "reason": "HttpStatus", "message": "HTTP status 503",
           "sinceMs": 41_200, "lastProbeAgoMs": 1_200, "intervalMs": 11_000})
}

#[test]
fn report_round_trip() {
    assert_eq!(report().to_json(), as_json());
    assert_eq!(HealthReport::parse(&as_json()), Ok(report()));
    assert_eq!(report().acknowledgement(), "9f0c/7");
    let unprobed = HealthReport { last_probe_ago_ms: None, verdict_within_ms: Some(5_000), ..report() };
    assert_eq!(unprobed.to_json().get("lastProbeAgoMs"), None);
    assert_eq!(unprobed.to_json()["verdictWithinMs"], 5_000);
    assert_eq!(HealthReport::parse(&unprobed.to_json()), Ok(unprobed));
}

#[test]
fn reports_of_a_newer_agent() {
    for (field, value, expected) in [
        ("generation", json!(7.0), report()),
        ("epoch", json!("e".repeat(64)), HealthReport { epoch: "e".repeat(64), ..report() }),
        ("reason", json!("NewWord"), HealthReport { reason: "NewWord".into(), ..report() }),
        ("message", json!("a\u{7}\n"), HealthReport { message: "a\\x07\\x0a".into(), ..report() }),
        ("sinceMs", json!(null), HealthReport { since_ms: 0, ..report() }),
        ("sinceMs", json!(-5), HealthReport { since_ms: 0, ..report() }),
        ("more", json!([1]), report()),
    ] {
        let mut value_of_report = as_json();
        value_of_report[field] = value;
        assert_eq!(HealthReport::parse(&value_of_report), Ok(expected), "{value_of_report}");
    }
}

#[test]
fn invalid_reports() {
    const EPOCH: &str = "APP_HEALTH_REPORT.epoch: must be 1 to 64 printable characters";
    const GENERATION: &str = "APP_HEALTH_REPORT.generation: expected a whole number";
    const STATE: &str = "APP_HEALTH_REPORT.state: must be Unknown, Healthy or Unhealthy";
    for (field, value, error) in [
        ("epoch", json!(""), EPOCH),
        ("epoch", json!(5), EPOCH),
        ("epoch", json!("a\n"), EPOCH),
        ("epoch", json!("x".repeat(65)), EPOCH),
        ("generation", json!(-1), GENERATION),
        ("generation", json!(1.5), GENERATION),
        ("generation", json!("7"), GENERATION),
        ("generation", json!(null), GENERATION),
        ("state", json!("healthy"), STATE),
        ("state", json!(null), STATE),
    ] {
        let mut report = as_json();
        report[field] = value;
        assert_eq!(HealthReport::parse(&report), Err(error.to_owned()), "{report}");
    }
    assert_eq!(HealthReport::parse(&json!(5)), Err("APP_HEALTH_REPORT: expected an object, got 5".into()));
}

#[test]
fn hello_messages() {
    let with = |probe: Option<Value>| Hello { session: 17, heartbeat: Duration::from_secs(60), probe };
    let probe = json!({"grpc": {"port": 1}});
    for (hello, value) in [
        (with(None), json!({"session": 17, "heartbeatSeconds": 60})),
        (with(Some(probe.clone())), json!({"session": 17, "heartbeatSeconds": 60, "probe": probe})),
    ] {
        assert_eq!(hello.to_json(), value);
        assert_eq!(Hello::parse(&value), Ok(hello));
    }
    assert_eq!(
        Hello::parse(&json!({"session": 17.0, "heartbeatSeconds": 60.0, "probe": null})),
        Ok(with(None))
    );
    for (value, error) in [
        (json!([]), "hello: expected an object, got []"),
        (json!({"heartbeatSeconds": 60}), "hello.session: expected a whole number"),
        (
            json!({"session": 1, "heartbeatSeconds": 0}),
            "hello.heartbeatSeconds: expected a whole number, 1 or more",
        ),
    ] {
        assert_eq!(Hello::parse(&value), Err(error.to_owned()));
    }
}
