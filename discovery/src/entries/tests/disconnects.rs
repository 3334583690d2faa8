//! Tests of lost streams, silent agents, and entries that are kept nevertheless.

use super::*;

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
    // The stream of its Envoy stays open.
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
    // Its Envoy reconnects, its agent does not.
    after_healthy(
        settings(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("open 2 plain", "write | served True/ProbeSucceeded"),
            ("wait 11", "write, push | removed Unknown/AgentSilent"),
        ],
    );
    // Its Envoy reconnects several times, its agent does not.
    after_healthy(
        settings(),
        &[
            ("open 2 plain", "| served True/ProbeSucceeded"),
            ("close 1", "| served True/ProbeSucceeded"),
            ("wait 4", "| served True/ProbeSucceeded"),
            ("close 2", "write | served True/ProbeSucceeded"),
            ("open 3 plain", "write | served True/ProbeSucceeded"),
            ("wait 4", "| served True/ProbeSucceeded"),
            ("close 3", "write | served True/ProbeSucceeded"),
            ("wait 1", "| served True/ProbeSucceeded"),
            ("open 4 plain", "write | served True/ProbeSucceeded"),
            ("wait 2", "write, push | removed Unknown/AgentSilent"),
            ("close 4", "write | removed Unknown/AgentSilent"),
            ("wait 11", "delete, push | gone"),
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
    // Only an entry that was served is kept, not one that was unhealthy or had shut down.
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
