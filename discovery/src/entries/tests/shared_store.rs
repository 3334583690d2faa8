//! Tests of a store that several instances share.

use super::*;

fn shared() -> Settings {
    Settings { instance: "a".to_owned(), shared: true, ..settings() }
}

#[test]
fn agent_moves_to_another_instance() {
    check(
        shared(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("observed app-health/b 2", "close 1 Aborted superseded | served True/ProbeSucceeded"),
            // The other instance handles the entry as long as it is alive.
            ("alive a b", "| served True/ProbeSucceeded"),
            ("wait 1000", "| served True/ProbeSucceeded"),
            // It may have lost only the API server: its agents need a heartbeat to notice that.
            ("alive a", "| served True/ProbeSucceeded"),
            ("wait 81", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
    check(
        shared(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("alive a b", "| served True/ProbeSucceeded"),
            ("observed app-health/b 2", "close 1 Aborted superseded | served True/ProbeSucceeded"),
            // It has ended cleanly.
            ("alive a -b", "| served True/ProbeSucceeded"),
            ("wait 9", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
}

#[test]
fn isolated_instance_ends_the_streams_of_its_agents() {
    let isolated = "close 1 Aborted this replica of discovery has lost its API server, write";
    let isolated = format!("{isolated} | served True/ProbeSucceeded");
    check(
        shared(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("alive a b", "| served True/ProbeSucceeded"),
            ("away", "| served True/ProbeSucceeded"),
            ("isolated", &isolated),
            ("wait 1000", "| served True/ProbeSucceeded"),
            ("back", "| served True/ProbeSucceeded"),
            // The agent has moved to the other instance.
            ("observed app-health/b 2", "| served True/ProbeSucceeded"),
            ("wait 1000", "| served True/ProbeSucceeded"),
        ],
    );
}

/// The steps before an agent moves to another instance while its Envoy stays connected here.
const MOVED: [(&str, &str); 5] = [
    ("config probe", "| gone"),
    ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
    ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
    ("alive a b", "| served True/ProbeSucceeded"),
    ("open 2 istio", "| served True/ProbeSucceeded"),
];

fn after_moved(rows: &[(&str, &str)]) {
    let rows: Vec<_> = MOVED.iter().chain(rows).copied().collect();
    check(shared(), auto(), &rows);
}

#[test]
fn entry_of_a_moved_agent_does_not_time_out_here() {
    let end = [
        ("wait 1000", "| served True/ProbeSucceeded"),
        // No live instance receives reports of its agent now.
        ("alive a", "write | served True/ProbeSucceeded"),
        ("wait 81", "| served True/ProbeSucceeded"),
        ("wait 2", "write, push | removed Unknown/AgentSilent"),
        ("open 4 ours", "hello 4 s3 probe, write | removed Unknown/AgentSilent"),
        ("report 4 e 1 Healthy", "write, push, ack 4 e/1 | served True/ProbeSucceeded"),
    ];
    // The stream here ends before or after the other instance begins a session; the Envoy
    // reconnects later.
    let here_first = [
        ("close 1", "| served True/ProbeSucceeded"),
        ("wait 1", "| served True/ProbeSucceeded"),
        ("observed app-health/b 2", "| served True/ProbeSucceeded"),
    ];
    let there_first = [
        ("observed app-health/b 2", "close 1 Aborted superseded | served True/ProbeSucceeded"),
        ("close 1", "| served True/ProbeSucceeded"),
    ];
    let again = [
        ("close 2", "| served True/ProbeSucceeded"),
        ("wait 1", "| served True/ProbeSucceeded"),
        ("open 3 istio", "| served True/ProbeSucceeded"),
    ];
    after_moved(&[&here_first[..], &end].concat());
    after_moved(&[&there_first[..], &end].concat());
    after_moved(&[&there_first[..], &again, &end].concat());
}

/// The instance that the agent left does not apply the deadline of its first probe result.
#[test]
fn first_result_deadline_moves_with_the_agent() {
    check(
        shared(),
        auto(),
        &[
            MOVED[0],
            MOVED[1],
            ("report 1 e 0 Awaiting", "ack 1 e/0 | removed Unknown/AwaitingFirstReport"),
            ("alive a b", "| removed Unknown/AwaitingFirstReport"),
            ("observed app-health/b 2", "close 1 Aborted superseded | removed Unknown/AwaitingFirstReport"),
            ("wait 1000", "| removed Unknown/AwaitingFirstReport"),
        ],
    );
}

#[test]
fn two_instances_begin_the_same_session() {
    check(
        shared(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("hold", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push | served True/ProbeSucceeded"),
            ("observed app-health/b 4", "hello 1 s5 probe, write | served True/ProbeSucceeded"),
            ("store", "ack 1 e/1 | served True/ProbeSucceeded"),
            ("observed app-health/b 5", "write | served True/ProbeSucceeded"),
        ],
    );
}

#[test]
fn external_edits_and_deletions() {
    check(
        shared(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("deleted", "write | served True/ProbeSucceeded"),
            (
                "observed app-health/a 1 moved",
                "close 1 Aborted the entry was edited, write, push | served True/ProbeSucceeded",
            ),
            ("open 2 ours", "hello 2 s2 probe, write, push | served True/ProbeSucceeded"),
        ],
    );
}

#[test]
fn entries_of_other_controllers_are_not_written() {
    check(
        shared(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("observed istiod-7 0", "push | served"),
            ("open 1 ours", "hello 1 s0 | served"),
            ("istio 1 bad", "| served"),
            ("wait 1000", "| served"),
            ("deleted", "push, hello 1 s1 probe, write, push, write, push | removed False/ProbeFailed"),
        ],
    );
}

#[test]
fn unreachable_store_pauses_deadlines() {
    check(
        shared(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("away", "| served True/ProbeSucceeded"),
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 60", "| served True/ProbeSucceeded"),
            ("back", "| served True/ProbeSucceeded"),
            ("wait 9", "| served True/ProbeSucceeded"),
            ("wait 2", "delete, push | gone"),
        ],
    );
}

/// The stream of the Envoy is open here, the agent reports to the other instance, which deletes the
/// entry with its group.
#[test]
fn entry_of_a_deleted_group_is_not_written_again() {
    after_moved(&[
        ("observed app-health/b 2", "close 1 Aborted superseded | served True/ProbeSucceeded"),
        ("config", "| served True/ProbeSucceeded"),
        ("deleted", "push | gone"),
    ]);
    // The other instance was lost before it deleted the entry.
    after_moved(&[
        ("observed app-health/b 2", "close 1 Aborted superseded | served True/ProbeSucceeded"),
        ("config", "| served True/ProbeSucceeded"),
        ("alive a", "| served True/ProbeSucceeded"),
        ("wait 81", "| served True/ProbeSucceeded"),
        ("wait 2", "delete, push | gone"),
    ]);
}

/// The agent was lost here and has moved to the other instance before a snapshot decided about the entry.
#[test]
fn entry_of_a_moved_agent_is_not_deleted_here() {
    check(
        Settings { keep_last_endpoint: true, ..shared() },
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
            ("alive a b", "| served True/ProbeSucceeded"),
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 11", "write, push, push | removed Unknown/Disconnected"),
            ("preserved", "| removed Unknown/Disconnected"),
            ("observed app-health/b 2", "| removed Unknown/Disconnected"),
            ("not preserved", "| removed Unknown/Disconnected"),
        ],
    );
}
