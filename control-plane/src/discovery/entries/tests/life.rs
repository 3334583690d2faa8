//! The table of an entry's life.

use super::*;

/// Up to a healthy auto-registered entry of a group with a probe.
const HEALTHY: [(&str, &str); 3] = [
    ("config probe", "| gone"),
    ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
    ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
];

fn after_healthy(settings: Settings, rows: &[(&str, &str)]) {
    let rows: Vec<_> = HEALTHY.iter().chain(rows).copied().collect();
    check(settings, auto(), &rows);
}

#[test]
fn registered_with_and_without_a_probe() {
    check(
        settings(),
        auto(),
        &[("config group", "| gone"), ("open 1 ours", "hello 1 s1, write, push | served")],
    );
    check(
        settings(),
        auto(),
        &[
            ("config group", "| gone"),
            ("open 1 plain declares", "write, push | removed Unknown/AwaitingFirstReport"),
        ],
    );
    after_healthy(settings(), &[]);
}

#[test]
fn reports() {
    after_healthy(
        settings(),
        &[
            ("report 1 e 2 Unhealthy", "write, push, ack 1 e/2 | removed False/ProbeFailed"),
            ("report 1 e 2 Unhealthy", "ack 1 e/2 | removed False/ProbeFailed"),
            ("report 1 e 1 Healthy", "stale | removed False/ProbeFailed"),
            ("report 1 e 2 Healthy", "stale | removed False/ProbeFailed"),
            ("report 1 f 9 Healthy", "stale | removed False/ProbeFailed"),
            ("report 1 e 3 Healthy", "write, push, ack 1 e/3 | served True/ProbeSucceeded"),
            ("report 1 e 4 Draining", "write, push, ack 1 e/4 | removed False/Draining"),
            ("report 1 e 5 Terminating", "write, ack 1 e/5 | removed False/Terminating"),
            ("close 1", "write | removed False/Terminating"),
            ("wait 9.9", "| removed False/Terminating"),
            ("wait 0.2", "delete, push | gone"),
        ],
    );
}

#[test]
fn no_probe() {
    check(
        settings(),
        auto(),
        &[
            ("config group", "| gone"),
            ("open 1 ours declares", "hello 1 s1, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 0 NoProbe", "write, push, ack 1 e/0 | served"),
            ("report 1 e 1 Healthy", "write, ack 1 e/1 | served True/ProbeSucceeded"),
            ("report 1 e 2 NoProbe", "write, ack 1 e/2 | served"),
            // Whoever has no probe is not missed.
            ("wait 1000", "| served"),
        ],
    );
    check(
        settings(),
        manual(),
        &[
            ("config checked", "push | removed"),
            ("open 1 ours entry", "hello 1 s1, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 0 NoProbe", "write, ack 1 e/0 | removed Unknown/NoProbe"),
        ],
    );
}

#[test]
fn awaiting_a_verdict() {
    after_healthy(
        settings(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 5", "| served True/ProbeSucceeded"),
            ("open 2 ours", "hello 2 s2 probe, write | served True/ProbeSucceeded"),
            ("report 2 f 0 Awaiting", "ack 2 f/0 | served True/ProbeSucceeded"),
            ("wait 10", "| served True/ProbeSucceeded"),
            // Not counted anew, whoever says it again.
            ("report 2 f 0 Awaiting", "ack 2 f/0 | served True/ProbeSucceeded"),
            ("wait 9.9", "| served True/ProbeSucceeded"),
            ("wait 0.2", "write, push | removed Unknown/AwaitingVerdict"),
            ("report 2 f 1 Healthy", "write, push, ack 2 f/1 | served True/ProbeSucceeded"),
        ],
    );
    // An agent that has not got the group's probe yet.
    after_healthy(
        settings(),
        &[
            ("report 1 e 2 Unhealthy", "write, push, ack 1 e/2 | removed False/ProbeFailed"),
            (
                "open 2 ours",
                "close 1 Aborted superseded, hello 2 s2 probe, write | removed False/ProbeFailed",
            ),
            ("report 2 f 0 NoProbe", "ack 2 f/0 | removed False/ProbeFailed"),
            ("report 2 f 0 Awaiting", "ack 2 f/0 | removed False/ProbeFailed"),
            ("report 2 f 1 Unhealthy", "ack 2 f/1 | removed False/ProbeFailed"),
            ("wait 60", "| removed False/ProbeFailed"),
        ],
    );
}

#[test]
fn lost_streams() {
    let keep = Settings { unknown_policy: UnknownPolicy::Keep, ..settings() };
    after_healthy(
        keep.clone(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 9", "| served True/ProbeSucceeded"),
            ("open 2 ours", "hello 2 s2 probe, write | served True/ProbeSucceeded"),
            ("wait 20", "| served True/ProbeSucceeded"),
            ("close 2", "write | served True/ProbeSucceeded"),
            ("wait 11", "delete, push | gone"),
        ],
    );
    // Its Envoy's stream lives.
    after_healthy(
        settings(),
        &[
            ("open 2 plain", "| served True/ProbeSucceeded"),
            ("close 1", "| served True/ProbeSucceeded"),
            ("wait 11", "write, push | removed Unknown/AgentSilent"),
            ("close 2", "write | removed Unknown/AgentSilent"),
            ("wait 11", "delete, push | gone"),
        ],
    );
    // Its Envoy comes back, its agent does not.
    after_healthy(
        settings(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("open 2 plain", "write | served True/ProbeSucceeded"),
            ("wait 11", "write, push | removed Unknown/AgentSilent"),
        ],
    );
    let manual_rows = |end| {
        [
            ("config checked", "push | removed"),
            ("open 1 ours entry", "hello 1 s1, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 11", end),
        ]
    };
    check(settings(), manual(), &manual_rows("write, push | removed Unknown/Disconnected"));
    check(keep.clone(), manual(), &manual_rows("write | served Unknown/Disconnected"));
    // Kept is what was served, not who was sick or had left.
    for (word, reason) in [("Unhealthy", "ProbeFailed"), ("Terminating", "Terminating")] {
        let removed = format!("write, push, ack 1 e/2 | removed False/{reason}");
        let (report, lost) = (format!("report 1 e 2 {word}"), format!("write | removed False/{reason}"));
        let mut rows = manual_rows("write, push | removed Unknown/Disconnected").to_vec();
        rows.splice(3..4, [(report.as_str(), removed.as_str()), ("close 1", lost.as_str())]);
        check(keep.clone(), manual(), &rows);
    }
}

#[test]
fn silence() {
    after_healthy(
        settings(),
        &[
            ("wait 200", "| served True/ProbeSucceeded"),
            ("report 1 e 1 Healthy", "ack 1 e/1 | served True/ProbeSucceeded"),
            ("wait 215", "| served True/ProbeSucceeded"),
            ("wait 2", "write, push | removed Unknown/AgentSilent"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("report 1 e 1 Stalled", "write, push, ack 1 e/1 | removed Unknown/ProberStalled"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
        ],
    );
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 plain", "write, push | removed Unknown/AwaitingFirstReport"),
            ("plain 1 ok", "write, push | served True/ProbeSucceeded"),
            ("wait 100000", "| served True/ProbeSucceeded"),
            ("plain 1 ok", "| served True/ProbeSucceeded"),
            ("plain 1 bad", "write, push | removed False/ProbeFailed"),
        ],
    );
}

#[test]
fn groups_under_live_streams() {
    check(
        settings(),
        auto(),
        &[
            ("config", "| gone"),
            ("open 1 ours", "hello 1 s0 | gone"),
            ("report 1 e 1 Healthy", "| gone"),
            ("config group", "hello 1 s1, write, push, write, ack 1 e/1 | served True/ProbeSucceeded"),
            ("config probe", "hello 1 s1 probe | served True/ProbeSucceeded"),
            ("config", "delete, push, hello 1 s0 | gone"),
            ("config probe", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
        ],
    );
    // A plain reporter says it only once.
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 plain", "write, push | removed Unknown/AwaitingFirstReport"),
            ("plain 1 ok", "write, push | served True/ProbeSucceeded"),
            ("config", "delete, push | gone"),
            ("config probe", "write, push, write, push | served True/ProbeSucceeded"),
        ],
    );
    // A probe that comes later takes nobody out before there was time for a verdict.
    check(
        settings(),
        auto(),
        &[
            ("config group", "| gone"),
            ("open 1 ours", "hello 1 s1, write, push | served"),
            ("report 1 e 0 NoProbe", "ack 1 e/0 | served"),
            ("config probe", "hello 1 s1 probe | served"),
            ("report 1 e 0 Awaiting", "ack 1 e/0 | served"),
            ("wait 19", "| served"),
            ("wait 2", "write, push | removed Unknown/AwaitingVerdict"),
        ],
    );
    check(
        settings(),
        auto(),
        &[
            ("config group", "| gone"),
            ("open 1 ours as:web", "hello 1 s1, write, push | served"),
            (
                "config account",
                "close 1 PermissionDenied entry shop/payments-10.0.0.7 is one of another service account, write | served",
            ),
        ],
    );
}

#[test]
fn manual_entries() {
    check(
        settings(),
        manual(),
        &[
            ("open 1 ours entry", "hello 1 s0 | gone"),
            // Reports are stored, and ignored.
            ("config manual", "push, hello 1 s1, write | served"),
            ("report 1 e 1 Unhealthy", "write, ack 1 e/1 | served False/ProbeFailed"),
            ("config checked", "push | removed False/ProbeFailed"),
            ("report 1 e 2 Healthy", "write, push, ack 1 e/2 | served True/ProbeSucceeded"),
            ("config moved", "close 1 Aborted the entry was edited, write, push | removed"),
            ("config", "delete, push | gone"),
        ],
    );
}

/// What was sent to a process that was stopped is read after its timers: those must not act before.
#[test]
fn a_process_that_was_stopped() {
    let graceful = Settings { restart_grace: Duration::from_secs(120), ..settings() };
    after_healthy(
        graceful.clone(),
        &[
            ("stopped 1000", "| served True/ProbeSucceeded"),
            ("report 1 e 1 Healthy", "ack 1 e/1 | served True/ProbeSucceeded"),
            ("stopped 1000", "| served True/ProbeSucceeded"),
            // Its agent gave the stream up meanwhile, and comes back.
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 119", "| served True/ProbeSucceeded"),
            ("open 2 ours", "hello 2 s2 probe, write | served True/ProbeSucceeded"),
            ("report 2 f 1 Unhealthy", "write, push, ack 2 f/1 | removed False/ProbeFailed"),
        ],
    );
    after_healthy(
        graceful.clone(),
        &[
            ("stopped 1000", "| served True/ProbeSucceeded"),
            ("wait 119", "| served True/ProbeSucceeded"),
            ("wait 2", "write, push | removed Unknown/AgentSilent"),
        ],
    );
    after_healthy(
        graceful,
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("stopped 1000", "| served True/ProbeSucceeded"),
            ("wait 119", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
}

#[test]
fn restarts() {
    let graceful = Settings { restart_grace: Duration::from_secs(120), ..settings() };
    after_healthy(
        graceful.clone(),
        &[
            ("restart", "| served True/ProbeSucceeded"),
            ("config probe", "| served True/ProbeSucceeded"),
            ("wait 119", "| served True/ProbeSucceeded"),
            ("open 2 ours", "hello 2 s2 probe, write, push | served True/ProbeSucceeded"),
            ("close 2", "write | served True/ProbeSucceeded"),
            ("wait 9", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
    after_healthy(
        graceful.clone(),
        &[
            ("restart", "| served True/ProbeSucceeded"),
            ("config probe", "| served True/ProbeSucceeded"),
            ("open 2 ours", "hello 2 s2 probe, write, push | served True/ProbeSucceeded"),
            // Reports act at once.
            ("report 2 f 1 Unhealthy", "write, push, ack 2 f/1 | removed False/ProbeFailed"),
            ("restart", "| removed False/ProbeFailed"),
            ("config probe", "| removed False/ProbeFailed"),
            ("open 3 plain", "push | removed False/ProbeFailed"),
            ("wait 121", "write, push | removed Unknown/AgentSilent"),
        ],
    );
    // Who came back and stayed is missed like ever.
    after_healthy(
        graceful.clone(),
        &[
            ("restart", "| served True/ProbeSucceeded"),
            ("config probe", "| served True/ProbeSucceeded"),
            ("open 2 ours", "hello 2 s2 probe, write, push | served True/ProbeSucceeded"),
            ("wait 29", "| served True/ProbeSucceeded"),
            ("close 2", "write | served True/ProbeSucceeded"),
            ("wait 20", "| served True/ProbeSucceeded"),
            ("open 3 ours", "hello 3 s3 probe, write | served True/ProbeSucceeded"),
            ("wait 30", "| served True/ProbeSucceeded"),
            ("close 3", "write | served True/ProbeSucceeded"),
            ("wait 9", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
    // What is new since the start was there: it is missed like ever.
    after_healthy(
        graceful.clone(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 9", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
    // Its group was deleted meanwhile, or cannot be read.
    after_healthy(
        graceful.clone(),
        &[("restart", "| served True/ProbeSucceeded"), ("config", "delete, push | gone")],
    );
    after_healthy(
        graceful,
        &[
            ("restart", "| served True/ProbeSucceeded"),
            ("config incomplete", "| served True/ProbeSucceeded"),
            ("wait 300", "| served True/ProbeSucceeded"),
            ("config probe", "| served True/ProbeSucceeded"),
        ],
    );
}

#[test]
fn last_endpoint() {
    let keep = Settings { keep_last_endpoint: true, ..settings() };
    after_healthy(
        keep.clone(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 11", "write, push, push | removed Unknown/Disconnected"),
            ("kept", "| removed Unknown/Disconnected"),
            ("wait 1000", "| removed Unknown/Disconnected"),
            ("open 2 ours", "hello 2 s2 probe, write | removed Unknown/Disconnected"),
            ("unkept", "| removed Unknown/Disconnected"),
            ("close 2", "write | removed Unknown/Disconnected"),
            ("wait 11", "push | removed Unknown/Disconnected"),
            ("unkept", "delete, push | gone"),
        ],
    );
    after_healthy(
        keep,
        &[
            ("report 1 e 2 Terminating", "write, push, ack 1 e/2 | removed False/Terminating"),
            ("close 1", "write | removed False/Terminating"),
            ("wait 11", "delete, push | gone"),
        ],
    );
}

#[test]
fn times_of_a_condition() {
    let mut case = Case::new(settings());
    let mut times = |steps: &[&str]| {
        steps.iter().for_each(|step| drop(case.word(step)));
        let condition = case.entries.entries[&auto()].record.condition.clone().expect("a condition");
        let since = |time: Timestamp| time.seconds() - START;
        (condition.last_probe_time.map(since), since(condition.last_transition_time))
    };
    assert_eq!(times(&["config probe", "wait 100", "open 1 ours"]), (None, 100));
    assert_eq!(times(&["wait 10", "report 1 e 1 Healthy"]), (Some(108), 110));
    assert_eq!(times(&["wait 10", "report 1 e 1 Healthy"]), (Some(118), 110));
    assert_eq!(times(&["wait 10", "report 1 e 2 Unhealthy"]), (Some(128), 130));
    // Another reason is no transition.
    assert_eq!(times(&["wait 10", "report 1 e 3 Draining"]), (Some(128), 130));
}

/// A server that lost its store tells by this who may be missing in a client's set.
#[test]
fn who_was_sick_before_the_start_is_no_news() {
    // The report after 30 s: its state, the age of that, and whether the entry still counts as awaited.
    for (word, since_ms, healthy_before, awaited) in [
        ("Healthy", 60_000, false, false),
        ("Unhealthy", 60_000, false, true),
        ("Unhealthy", 29_000, false, false),
        ("Unhealthy", 60_000, true, false),
    ] {
        let mut case = Case::new(settings());
        case.word("config probe");
        case.word("open 1 ours");
        let is_awaited = |case: &Case| case.entries.workloads().next().map(|workload| workload.awaited);
        assert_eq!(is_awaited(&case), Some(true));
        if healthy_before {
            case.word("report 1 e 1 Healthy");
        }
        case.word("wait 30");
        let report = Report::AppHealth(HealthReport { since_ms, ..report("e", "2", word) });
        case.input(Input::Report { stream: 1, report });
        assert_eq!(is_awaited(&case), Some(awaited), "{word} for {since_ms} ms");
    }
}
