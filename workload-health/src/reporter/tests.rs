//! Table tests of the reporter: each row has a time in seconds, an input, and the expected effects.

mod disconnects;
mod final_report;
mod random;
mod servers;

use crate::HealthReason;

use super::*;

const EPOCH: &str = "9f0c";

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn settings() -> ReporterSettings {
    ReporterSettings {
        epoch: EPOCH.into(),
        heartbeat: secs(60.0),
        istio_heartbeat: Some(secs(300.0)),
        final_report_timeout: secs(2.0),
    }
}

fn status(generation: u64, reason: HealthReason) -> HealthStatus {
    let state = match reason {
        HealthReason::ProbeSucceeded => State::Healthy,
        HealthReason::AwaitingVerdict | HealthReason::NoProbe => State::Unknown,
        _ => State::Unhealthy,
    };
    let message = format!("{reason}");
    let verdict = Verdict { state, reason, message, generation };
    HealthStatus { verdict, since: Duration::ZERO, last_probe: None, interval: None, verdict_due: None }
}

fn unknown() -> Input {
    Input::Status(status(0, HealthReason::AwaitingVerdict))
}

fn no_probe() -> Input {
    Input::Status(status(0, HealthReason::NoProbe))
}

fn healthy(generation: u64) -> Input {
    Input::Status(status(generation, HealthReason::ProbeSucceeded))
}

fn unhealthy(generation: u64) -> Input {
    Input::Status(status(generation, HealthReason::HttpStatus))
}

fn draining(generation: u64) -> Input {
    Input::Status(status(generation, HealthReason::Draining))
}

fn terminating(generation: u64) -> Input {
    Input::Status(status(generation, HealthReason::Terminating))
}

fn hello(session: u64) -> Input {
    let hello = Hello { session, heartbeat: secs(60.0), probe: None };
    Input::Hello { hello, version: "v".into(), nonce: "n".into() }
}

fn pushed(probe: &str) -> Input {
    let hello = Hello { session: 1, heartbeat: secs(60.0), probe: Some(probe.into()) };
    Input::Hello { hello, version: probe.into(), nonce: format!("of-{probe}") }
}

fn validated(stream: u64, version: &str, result: Result<(), &str>) -> Input {
    let result = result.map_err(str::to_owned);
    let hello = HelloId { stream, version: version.into(), nonce: format!("of-{version}") };
    Input::Validated { hello, result }
}

fn acked(generation: u64) -> Input {
    Input::Acknowledged(format!("{EPOCH}/{generation}"))
}

fn describe(effect: Effect) -> Option<String> {
    let again = |attempt| if attempt == Attempt::Retry { " again" } else { "" };
    Some(match effect {
        Effect::Send(Report::Istio { healthy, message }, attempt) => {
            let message = if message.is_empty() { message } else { format!(" {message}") };
            format!("istio {healthy}{message}{}", again(attempt))
        }
        Effect::Send(Report::AppHealth(report), attempt) => {
            format!("{}/{}{}", report.generation, report.reason, again(attempt))
        }
        // Most rows contain hello messages, and only one table is about the responses to them.
        Effect::ValidateProbe { probe: None, .. } => return None,
        Effect::ValidateProbe { hello, .. } => format!("offer {} {}", hello.stream, hello.version),
        Effect::AckOrNack { version, nonce, nack_reason } => {
            format!("answer {nonce} {version} {nack_reason:?}")
        }
        Effect::NothingToReport => "nothing to report".into(),
        Effect::Unresponsive => "unresponsive".into(),
        Effect::Delivered => "delivered".into(),
        Effect::Done => "done".into(),
    })
}

/// Checks a table of rows: time in seconds, input, expected effects. A row with [`Input::Tick`]
/// must be at exactly the time when the reporter is due next, and nothing may be due before any
/// other row. `random` returns 0.5, so heartbeats have no jitter and pauses are in the middle of
/// their range.
fn check(first: Input, rows: &[(f64, Input, &[&str])]) -> Reporter {
    let Input::Status(first) = first else { panic!("the first input must be a status") };
    let mut reporter = Reporter::new(settings(), first);
    for (at, input, expected) in rows {
        let due = reporter.next_due();
        if *input == Input::Tick {
            assert_eq!(due, Some(secs(*at)), "before {at} s");
        } else {
            assert!(due.is_none_or(|due| due >= secs(*at)), "something is due at {due:?}, before {at} s");
        }
        let done = reporter.step(secs(*at), input.clone(), &mut || 0.5);
        let done: Vec<String> = done.into_iter().filter_map(describe).collect();
        assert_eq!(done, *expected, "at {at} s: {input:?}");
    }
    reporter
}
