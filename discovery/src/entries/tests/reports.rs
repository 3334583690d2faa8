//! Tests of how reports change an entry.

use super::*;

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
            ("open 1 istio declares", "write, push | removed Unknown/AwaitingFirstReport"),
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
            // The silence of an agent without a probe has no effect.
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
fn awaiting_the_first_probe_result() {
    after_healthy(
        settings(),
        &[
            ("close 1", "write | served True/ProbeSucceeded"),
            ("wait 5", "| served True/ProbeSucceeded"),
            ("open 2 ours", "hello 2 s2 probe, write | served True/ProbeSucceeded"),
            ("report 2 f 0 Awaiting", "ack 2 f/0 | served True/ProbeSucceeded"),
            ("wait 10", "| served True/ProbeSucceeded"),
            // A repeated report does not extend the deadline.
            ("report 2 f 0 Awaiting", "ack 2 f/0 | served True/ProbeSucceeded"),
            ("wait 9.9", "| served True/ProbeSucceeded"),
            ("wait 0.2", "write, push | removed Unknown/AwaitingVerdict"),
            ("report 2 f 1 Healthy", "write, push, ack 2 f/1 | served True/ProbeSucceeded"),
        ],
    );
    // This agent has not received the group's probe yet.
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
    // A change of only the reason is not a transition.
    assert_eq!(times(&["wait 10", "report 1 e 3 Draining"]), (Some(128), 130));
}
