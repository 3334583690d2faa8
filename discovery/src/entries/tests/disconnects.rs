//! Tests of lost streams, silent agents, and entries that are preserved nevertheless.

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
            ("open 2 istio", "| served True/ProbeSucceeded"),
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
            ("open 2 istio", "write | served True/ProbeSucceeded"),
            ("wait 11", "write, push | removed Unknown/AgentSilent"),
        ],
    );
    // Its Envoy reconnects several times, its agent does not.
    after_healthy(
        settings(),
        &[
            ("open 2 istio", "| served True/ProbeSucceeded"),
            ("close 1", "| served True/ProbeSucceeded"),
            ("wait 4", "| served True/ProbeSucceeded"),
            ("close 2", "write | served True/ProbeSucceeded"),
            ("open 3 istio", "write | served True/ProbeSucceeded"),
            ("wait 4", "| served True/ProbeSucceeded"),
            ("close 3", "write | served True/ProbeSucceeded"),
            ("wait 1", "| served True/ProbeSucceeded"),
            ("open 4 istio", "write | served True/ProbeSucceeded"),
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
    // Only an entry that was served is preserved, not one that was unhealthy or had shut down.
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
            ("open 1 istio", "write, push | removed Unknown/AwaitingFirstReport"),
            ("istio 1 ok", "write, push | served True/ProbeSucceeded"),
            ("wait 100000", "| served True/ProbeSucceeded"),
            ("istio 1 ok", "| served True/ProbeSucceeded"),
            ("istio 1 bad", "write, push | removed False/ProbeFailed"),
        ],
    );
}

/// An app-health agent that has not received the server's hello repeats Istio's report.
#[test]
fn every_report_of_an_agent_ends_its_silence() {
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("istio 1 ok", "write, push | served True/ProbeSucceeded"),
            ("wait 200", "| served True/ProbeSucceeded"),
            ("istio 1 ok", "| served True/ProbeSucceeded"),
            ("wait 215", "| served True/ProbeSucceeded"),
            ("wait 2", "write, push | removed Unknown/AgentSilent"),
        ],
    );
}

/// The stream of an Envoy does not keep the endpoint of a workload whose agent is gone.
#[test]
fn agent_without_a_probe_in_a_group_with_one() {
    let unprobed = [
        ("config probe", "| gone"),
        ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
        ("open 2 istio", "| removed Unknown/AwaitingFirstReport"),
        ("report 1 e 0 NoProbe", "ack 1 e/0 | removed Unknown/AwaitingFirstReport"),
    ];
    let after = |rows: &[(&str, &str)]| {
        let rows: Vec<_> = unprobed.iter().chain(rows).copied().collect();
        check(settings(), auto(), &rows);
    };
    after(&[
        ("wait 21", "write, push | served"),
        ("close 1", "| served"),
        ("wait 11", "write, push | removed Unknown/AgentSilent"),
        ("open 3 ours", "hello 3 s2 probe, write | removed Unknown/AgentSilent"),
    ]);
    // The agent is lost before the server has accepted that it has no probe.
    after(&[
        ("close 1", "| removed Unknown/AwaitingFirstReport"),
        ("wait 11", "write | removed Unknown/AgentSilent"),
        ("wait 100", "| removed Unknown/AgentSilent"),
    ]);
    // The group gets its probe when the agent is lost already.
    check(
        settings(),
        auto(),
        &[
            ("config group", "| gone"),
            ("open 1 ours", "hello 1 s1, write, push | served"),
            ("open 2 istio", "| served"),
            ("report 1 e 0 NoProbe", "ack 1 e/0 | served"),
            ("close 1", "| served"),
            ("wait 100", "| served"),
            ("config probe", "| served"),
            ("wait 9", "| served"),
            ("wait 2", "write, push | removed Unknown/AgentSilent"),
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
            ("preserved", "| removed Unknown/Disconnected"),
            ("wait 1000", "| removed Unknown/Disconnected"),
            ("open 2 ours", "hello 2 s2 probe, write | removed Unknown/Disconnected"),
            ("not preserved", "| removed Unknown/Disconnected"),
            ("close 2", "write | removed Unknown/Disconnected"),
            ("wait 11", "push | removed Unknown/Disconnected"),
            ("not preserved", "delete, push | gone"),
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
