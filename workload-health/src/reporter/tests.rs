//! Table tests of the reporter: each row has a time in seconds, an input, and the expected effects.

mod goodbye;
mod losses;
mod random;
mod servers;

use crate::HealthReason;

use super::*;

const EPOCH: &str = "9f0c";

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn settings() -> Settings {
    Settings {
        epoch: EPOCH.into(),
        heartbeat: secs(60.0),
        plain_heartbeat: Some(secs(300.0)),
        goodbye_timeout: secs(2.0),
    }
}

fn level(generation: u64, reason: HealthReason) -> Level {
    let state = match reason {
        HealthReason::ProbeSucceeded => State::Healthy,
        HealthReason::AwaitingVerdict | HealthReason::NoProbe => State::Unknown,
        _ => State::Unhealthy,
    };
    let message = format!("{reason}");
    let (since, last_probe) = (Duration::ZERO, None);
    Level { generation, state, reason, message, since, last_probe, interval: None, verdict_due: None }
}

fn unknown() -> Input {
    Input::Level(level(0, HealthReason::AwaitingVerdict))
}

fn healthy(generation: u64) -> Input {
    Input::Level(level(generation, HealthReason::ProbeSucceeded))
}

fn unhealthy(generation: u64) -> Input {
    Input::Level(level(generation, HealthReason::HttpStatus))
}

fn draining(generation: u64) -> Input {
    Input::Level(level(generation, HealthReason::Draining))
}

fn hello(session: u64) -> Input {
    let hello = Hello { session, heartbeat: secs(60.0), probe: None };
    Input::Hello { hello, version: "v".into(), nonce: "n".into() }
}

fn pushed(probe: &str) -> Input {
    let hello = Hello { session: 1, heartbeat: secs(60.0), probe: Some(probe.into()) };
    Input::Hello { hello, version: probe.into(), nonce: format!("of-{probe}") }
}

fn judged(stream: u64, version: &str, verdict: Result<(), &str>) -> Input {
    let verdict = verdict.map_err(str::to_owned);
    Input::Judged { stream, version: version.into(), nonce: format!("of-{version}"), verdict }
}

fn acked(generation: u64) -> Input {
    Input::Acknowledged(format!("{EPOCH}/{generation}"))
}

const BROKEN: Input = Input::Lost(Loss::Broken);
const REFUSED: Input = Input::Lost(Loss::Refused);

fn word(effect: Effect) -> Option<String> {
    let again = |saying| if saying == Saying::Again { " again" } else { "" };
    Some(match effect {
        Effect::Connect => "connect".into(),
        Effect::Send(Report::Plain { healthy, message }, saying) => {
            let message = if message.is_empty() { message } else { format!(" {message}") };
            format!("plain {healthy}{message}{}", again(saying))
        }
        Effect::Send(Report::AppHealth(report), saying) => {
            format!("{}/{}{}", report.generation, report.reason, again(saying))
        }
        // Most rows contain hello messages, and only one table is about the responses to them.
        Effect::Offer { probe: None, .. } => return None,
        Effect::Offer { stream, version, .. } => format!("offer {stream} {version}"),
        Effect::Answer { version, nonce, refusal } => format!("answer {nonce} {version} {refusal:?}"),
        Effect::Close => "close".into(),
        Effect::HalfClose => "half-close".into(),
        Effect::Done => "done".into(),
    })
}

/// Checks a table of rows: time in seconds, input, expected effects. A row with [`Input::Tick`]
/// must be at exactly the time when the reporter is due next, and nothing may be due before any
/// other row. `random` returns 0.5, so heartbeats have no jitter and pauses are in the middle of
/// their range.
fn check(first: Input, rows: &[(f64, Input, &[&str])]) -> Reporter {
    let Input::Level(first) = first else { panic!("the first input must be a level") };
    let mut reporter = Reporter::new(settings(), first);
    for (at, input, expected) in rows {
        let due = reporter.next_due();
        if *input == Input::Tick {
            assert_eq!(due, Some(secs(*at)), "before {at} s");
        } else {
            assert!(due.is_none_or(|due| due >= secs(*at)), "something is due at {due:?}, before {at} s");
        }
        let done = reporter.step(secs(*at), input.clone(), &mut || 0.5);
        let done: Vec<String> = done.into_iter().filter_map(word).collect();
        assert_eq!(done, *expected, "at {at} s: {input:?}");
    }
    reporter
}
