//! Tests of a server that restarts or is suspended.

use super::*;

/// After a suspension, timers fire before pending messages are read, so they must not have an
/// effect.
#[test]
fn process_suspension_restarts_the_grace_period() {
    let graceful = Settings { restart_grace: Duration::from_secs(120), ..settings() };
    after_healthy(
        graceful.clone(),
        &[
            ("stopped 1000", "| served True/ProbeSucceeded"),
            ("report 1 e 1 Healthy", "ack 1 e/1 | served True/ProbeSucceeded"),
            ("stopped 1000", "| served True/ProbeSucceeded"),
            // The agent closed the stream in the meantime and reconnects.
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
            // Reports apply immediately.
            ("report 2 f 1 Unhealthy", "write, push, ack 2 f/1 | removed False/ProbeFailed"),
            ("restart", "| removed False/ProbeFailed"),
            ("config probe", "| removed False/ProbeFailed"),
            ("open 3 istio", "push | removed False/ProbeFailed"),
            ("wait 121", "write, push | removed Unknown/AgentSilent"),
        ],
    );
    // An agent that reconnected and stayed connected has the normal grace period.
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
    // An entry registered since the start has the normal grace period.
    after_healthy(
        graceful.clone(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 9", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
    // The group was deleted in the meantime, or cannot be read.
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

/// A server that lost its store uses this to decide whether a client may get a smaller assignment.
#[test]
fn entries_unhealthy_before_the_start_do_not_account_for_missing_endpoints() {
    // Columns: the reported state after 30 s, its age, whether the entry was healthy before, and
    // whether it is accounted for then.
    for (word, since_ms, healthy_before, accounted) in [
        ("Healthy", 60_000, false, true),
        ("Unhealthy", 60_000, false, false),
        ("Unhealthy", 29_000, false, true),
        ("Unhealthy", 60_000, true, true),
    ] {
        let mut case = Case::new(settings());
        case.word("config probe");
        case.word("open 1 ours");
        let is_accounted =
            |case: &Case| case.entries.workloads().next().map(|workload| workload.accounted_for);
        assert_eq!(is_accounted(&case), Some(false));
        if healthy_before {
            case.word("report 1 e 1 Healthy");
        }
        case.word("wait 30");
        let report = Report::AppHealth(HealthReport { since_ms, ..report("e", "2", word) });
        case.input(Input::Report { stream: 1, report });
        assert_eq!(is_accounted(&case), Some(accounted), "{word} for {since_ms} ms");
    }
}
