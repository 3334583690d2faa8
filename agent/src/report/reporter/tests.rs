mod random;

use probe::HealthReason;

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
        // Hellos come in most rows, and only one table is about their answers.
        Effect::Offer { probe: None, .. } => return None,
        Effect::Offer { stream, version, .. } => format!("offer {stream} {version}"),
        Effect::Answer { version, nonce, refusal } => format!("answer {nonce} {version} {refusal:?}"),
        Effect::Close => "close".into(),
        Effect::HalfClose => "half-close".into(),
        Effect::Done => "done".into(),
    })
}

/// Rows of seconds, what happens then, what is done. In between whatever is due is done too, and must be named: a row with
/// [`Input::Tick`] is checked to be exactly when something is due. `random` is one half, so heartbeats have no jitter and pauses are
/// in the middle.
fn check(first: Input, rows: &[(f64, Input, &[&str])]) -> Reporter {
    let Input::Level(first) = first else { panic!("a level is first") };
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

#[test]
fn towards_our_server() {
    check(
        unknown(),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.1, Input::Opened, &[]),
            (0.2, hello(7), &["0/AwaitingVerdict"]),
            (0.3, acked(0), &[]),
            (1.0, healthy(1), &["1/ProbeSucceeded"]),
            (1.1, acked(1), &[]),
            // No flip: only the next heartbeat tells of it.
            (2.0, healthy(1), &[]),
            (61.0, Input::Tick, &["1/ProbeSucceeded"]),
            (61.1, acked(1), &[]),
            (70.0, unhealthy(2), &["2/HttpStatus"]),
            (70.1, acked(2), &[]),
            (130.0, Input::Tick, &["2/HttpStatus"]),
        ],
    );
}

#[test]
fn towards_a_plain_server() {
    check(
        unknown(),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.5, Input::Opened, &[]),
            // Unknown is never said.
            (5.5, Input::Tick, &[]),
            (6.0, healthy(1), &["plain true"]),
            (11.0, Input::Tick, &["plain true again"]),
            (36.0, Input::Tick, &["plain true again"]),
            (336.0, Input::Tick, &["plain true"]),
            (636.0, Input::Tick, &["plain true"]),
            (640.0, unhealthy(2), &["plain false HttpStatus"]),
            (645.0, Input::Tick, &["plain false HttpStatus again"]),
        ],
    );
}

#[test]
fn after_a_reconnect_a_plain_server_is_told_again_too() {
    check(
        healthy(4),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.5, Input::Opened, &["plain true"]),
            (5.5, Input::Tick, &["plain true again"]),
            (30.5, Input::Tick, &["plain true again"]),
            (40.5, BROKEN, &[]),
            (40.8, Input::Tick, &["connect"]),
            (41.0, Input::Opened, &["plain true"]),
            (46.0, Input::Tick, &["plain true again"]),
        ],
    );
}

#[test]
fn a_plain_heartbeat_of_none() {
    let Input::Level(first) = healthy(1) else { panic!("a level") };
    let mut reporter = Reporter::new(Settings { plain_heartbeat: None, ..settings() }, first);
    for at in [0.0, 5.0, 30.0] {
        reporter.step(secs(at), if at == 0.0 { Input::Tick } else { Input::Opened }, &mut || 0.5);
    }
    reporter.step(secs(36.0), Input::Tick, &mut || 0.5);
    assert_eq!(reporter.next_due(), None);
}

#[test]
fn a_hello_that_comes_late() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.1, Input::Opened, &["plain true"]),
            (5.1, Input::Tick, &["plain true again"]),
            (7.0, hello(3), &["1/ProbeSucceeded"]),
            (7.1, acked(1), &[]),
            (67.0, Input::Tick, &["1/ProbeSucceeded"]),
        ],
    );
}

#[test]
fn nobody_acknowledges() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["plain true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (10.0, Input::Tick, &["1/ProbeSucceeded again"]),
            (20.0, Input::Tick, &["close"]),
            (20.3, Input::Tick, &["connect"]),
            (20.5, Input::Opened, &["plain true"]),
        ],
    );
}

#[test]
fn an_acknowledgement_of_an_older_report_buys_time() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["plain true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (4.0, unhealthy(2), &["2/HttpStatus"]),
            (5.0, acked(1), &[]),
            (6.0, Input::Acknowledged("other/2".into()), &[]),
            (7.0, Input::Acknowledged("2".into()), &[]),
            (15.0, Input::Tick, &["2/HttpStatus again"]),
            (16.0, acked(2), &[]),
            (75.0, Input::Tick, &["2/HttpStatus"]),
        ],
    );
}

#[test]
fn a_pending_entry_acknowledges_nothing() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["plain true"]),
            (0.0, hello(0), &["1/ProbeSucceeded", "answer n v None"]),
            (60.0, Input::Tick, &["1/ProbeSucceeded"]),
            (61.0, hello(9), &["1/ProbeSucceeded"]),
            (71.0, Input::Tick, &["1/ProbeSucceeded again"]),
        ],
    );
}

#[test]
fn only_the_newest_state_after_an_outage() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, BROKEN, &[]),
            (0.2, unhealthy(2), &[]),
            (0.25, healthy(3), &[]),
            (0.3, Input::Tick, &["connect"]),
            (0.4, unhealthy(4), &[]),
            (0.5, Input::Opened, &["plain false HttpStatus"]),
            (0.6, hello(2), &["4/HttpStatus"]),
        ],
    );
}

#[test]
fn pauses_grow_although_each_stream_lives_a_second() {
    // The middle of 100 ms to 500 ms, 1 s, 2 s, 4 s; and the longest after a refusal.
    check(
        unknown(),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &[]),
            (1.0, BROKEN, &[]),
            (1.3, Input::Tick, &["connect"]),
            (1.3, Input::Opened, &[]),
            (2.3, BROKEN, &[]),
            (2.85, Input::Tick, &["connect"]),
            (2.85, Input::Opened, &[]),
            (3.85, BROKEN, &[]),
            (4.9, Input::Tick, &["connect"]),
            (4.9, REFUSED, &[]),
            (19.95, Input::Tick, &["connect"]),
            (20.0, Input::Opened, &[]),
            (25.0, Input::Tick, &[]),
            (50.0, Input::Tick, &[]),
            (51.0, BROKEN, &[]),
            (51.3, Input::Tick, &["connect"]),
        ],
    );
}

#[test]
fn pushed_probes() {
    check(
        unknown(),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &[]),
            (0.0, pushed("a"), &["0/AwaitingVerdict", "offer 1 a"]),
            (0.1, judged(1, "a", Ok(())), &["answer of-a a None"]),
            (0.2, acked(0), &[]),
            (1.0, pushed("b"), &["offer 1 b"]),
            (1.1, judged(1, "b", Err("no")), &["answer of-b a Some(\"no\")"]),
            (2.0, Input::Garbled { text: "?".into(), nonce: "x".into() }, &["answer x a Some(\"?\")"]),
            (3.0, pushed("c"), &["offer 1 c"]),
            (3.1, BROKEN, &[]),
            (3.4, Input::Tick, &["connect"]),
            (3.5, Input::Opened, &[]),
            // What was offered on another stream is answered nowhere.
            (3.6, judged(1, "c", Ok(())), &[]),
        ],
    );
}

#[test]
fn goodbye_to_our_server() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["plain true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (0.1, acked(1), &[]),
            (5.0, Input::Leave, &[]),
            (5.1, draining(2), &["2/Draining"]),
            (5.2, acked(2), &["half-close"]),
            (5.3, Input::Tick, &["close", "done"]),
        ],
    );
}

#[test]
fn goodbye_after_a_drain() {
    let reporter = check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["plain true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (0.1, acked(1), &[]),
            // A drain alone ends nothing.
            (5.0, draining(2), &["2/Draining"]),
            (5.1, acked(2), &[]),
            (65.0, Input::Tick, &["2/Draining"]),
            (65.1, acked(2), &[]),
            (70.0, Input::Leave, &["half-close"]),
            (70.05, BROKEN, &["close", "done"]),
            (71.0, Input::Opened, &[]),
        ],
    );
    assert_eq!(reporter.next_due(), None);
}

#[test]
fn goodbye_to_a_plain_server() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["plain true"]),
            (1.0, draining(2), &["plain false Draining"]),
            (1.05, Input::Leave, &[]),
            (1.1, Input::Tick, &["half-close"]),
            (1.2, Input::Tick, &["close", "done"]),
        ],
    );
}

#[test]
fn goodbye_to_a_server_that_is_silent_away_or_back_in_time() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["plain true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (1.0, draining(2), &["2/Draining"]),
            (1.0, Input::Leave, &[]),
            (3.0, Input::Tick, &["close", "done"]),
        ],
    );
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, REFUSED, &[]),
            (1.0, draining(2), &[]),
            (1.0, Input::Leave, &["connect"]),
            (3.0, Input::Tick, &["close", "done"]),
        ],
    );
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, REFUSED, &[]),
            (1.0, draining(2), &[]),
            (1.0, Input::Leave, &["connect"]),
            (1.1, Input::Opened, &["plain false Draining"]),
            (1.15, hello(4), &["2/Draining"]),
            (1.2, acked(2), &["half-close"]),
        ],
    );
}

#[test]
fn changed_files_reopen_the_stream_once() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::FilesChanged, &[]),
            (0.0, Input::Opened, &["plain true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (0.1, acked(1), &[]),
            (10.0, Input::FilesChanged, &[]),
            (20.0, Input::FilesChanged, &[]),
            (25.0, Input::Tick, &["close", "connect"]),
            (25.1, Input::Opened, &["plain true"]),
            (25.2, hello(4), &["1/ProbeSucceeded"]),
        ],
    );
}

/// Since when the newest report waits, after a row.
#[test]
fn how_long_a_report_waits() {
    let mut rows: Vec<(f64, Input, &[&str])> = vec![
        (0.0, Input::Tick, &["connect"]),
        (0.0, Input::Opened, &["plain true"]),
        (0.5, hello(3), &["1/ProbeSucceeded"]),
    ];
    assert_eq!(check(healthy(1), &rows).unacknowledged(), Some(secs(0.5)));
    rows.push((1.0, BROKEN, &[]));
    assert_eq!(check(healthy(1), &rows).unacknowledged(), Some(secs(0.5)), "an outage ends nothing");
    rows.push((1.3, Input::Tick, &["connect"]));
    rows.push((1.4, Input::Opened, &["plain true"]));
    rows.push((6.4, Input::Tick, &["plain true again"]));
    assert_eq!(check(healthy(1), &rows).unacknowledged(), None, "there is nobody who would");
}
