//! Tests of changes of groups and entries while streams are open.

use super::*;

/// A report that is repeated late does not replace the newer one, also while the entry does not exist.
#[test]
fn older_report_while_the_group_is_absent() {
    after_healthy(
        settings(),
        &[
            ("report 1 e 2 Unhealthy", "write, push, ack 1 e/2 | removed False/ProbeFailed"),
            ("config", "delete, push, hello 1 s0 | gone"),
            ("report 1 e 2 Unhealthy", "| gone"),
            ("report 1 e 1 Healthy", "stale | gone"),
            (
                "config probe",
                "hello 1 s1 probe, write, push, write, push, ack 1 e/2 | removed False/ProbeFailed",
            ),
        ],
    );
}

#[test]
fn group_changes_with_open_streams() {
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
    // An Istio reporter does not repeat its report.
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 istio", "write, push | removed Unknown/AwaitingFirstReport"),
            ("istio 1 ok", "write, push | served True/ProbeSucceeded"),
            ("config", "delete, push | gone"),
            ("config probe", "write, push, write, push | served True/ProbeSucceeded"),
        ],
    );
    // A probe that is added later removes no endpoint before there was time for a probe result.
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
                "close 1 PermissionDenied entry shop/payments-10.0.0.7 requires another service account, write | served",
            ),
        ],
    );
}

/// As in istiod: no report of such an agent could ever add the endpoint.
#[test]
fn agents_of_istio_without_a_probe_are_served_in_a_group_with_one() {
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 istio probeless", "write, push | served"),
            ("wait 100", "| served"),
            ("close 1", "write | served"),
            ("wait 11", "delete, push | gone"),
            ("open 2 istio declares", "write, push | removed Unknown/AwaitingFirstReport"),
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
            // Reports are stored but have no effect on the endpoint.
            ("config manual", "push, hello 1 s1, write | served"),
            ("report 1 e 1 Unhealthy", "write, ack 1 e/1 | served False/ProbeFailed"),
            ("config checked", "push | removed False/ProbeFailed"),
            ("report 1 e 2 Healthy", "write, push, ack 1 e/2 | served True/ProbeSucceeded"),
            ("config moved", "close 1 Aborted the entry was edited, write, push | removed"),
            ("config", "delete, push | gone"),
        ],
    );
}
