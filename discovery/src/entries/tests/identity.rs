//! Tests of which streams may register and report.

use super::*;

#[test]
fn rejected_registrations_change_nothing() {
    let denied =
        "close 1 PermissionDenied entry shop/payments-10.0.0.7 requires another service account | gone";
    let rows = [
        ("open 1 ours as:pay", "hello 1 s1, write, push | served"),
        ("open 1 plain as:pay", "write, push | served"),
        ("open 1 ours", "hello 1 s1, write, push | served"),
        ("open 1 ours as:web", denied),
        ("open 1 plain as:web", denied),
        (
            "open 1 ours of:web",
            "close 1 PermissionDenied NAMESPACE: the certificate is for namespace web | gone",
        ),
        ("open 1 ours nameless", "close 1 InvalidArgument NAMESPACE: is required | gone"),
        ("open 1 client of:web", "| gone"),
    ];
    for row in rows {
        check(settings(), auto(), &[("config account", "| gone"), row]);
    }
}

#[test]
fn reports_without_an_entry_are_rejected() {
    check(
        settings(),
        auto(),
        &[
            ("config group", "| gone"),
            ("open 1 client", "| gone"),
            ("plain 1 ok", "no entry | gone"),
            ("plain 7 ok", "stale | gone"),
        ],
    );
}

#[test]
fn conflicting_entry_names() {
    let taken = "close 1 FailedPrecondition entry shop/payments-10.0.0.7 exists and does not belong to group payments | served";
    check(settings(), auto(), &[("config group taken", "push | served"), ("open 1 ours", taken)]);
    check(
        settings(),
        auto(),
        &[
            ("config group", "| gone"),
            ("open 1 ours", "hello 1 s1, write, push | served"),
            (
                "config group taken",
                "close 1 Aborted an entry of this name was configured, write, delete, push, push | served",
            ),
        ],
    );
}

#[test]
fn peer_address_check() {
    let of = |check| Settings { peer_address_check: check, ..settings() };
    let refused =
        "close 1 PermissionDenied entry shop/payments-10.0.0.7 does not have the address 10.0.0.8 | gone";
    let rows = [
        (PeerAddressCheck::Require, "open 1 ours far", refused),
        (PeerAddressCheck::Require, "open 1 ours", "hello 1 s1, write, push | served"),
        (PeerAddressCheck::Require, "open 1 ours mapped", "hello 1 s1, write, push | served"),
        (PeerAddressCheck::Warn, "open 1 ours far", "other peer, hello 1 s1, write, push | served"),
        (PeerAddressCheck::Off, "open 1 ours far", "hello 1 s1, write, push | served"),
    ];
    for (policy, step, expected) in rows {
        check(of(policy), auto(), &[("config group", "| gone"), (step, expected)]);
    }
}

#[test]
fn labels_of_the_reporting_agent_take_precedence() {
    let mut case = Case::new(settings());
    for step in ["config group", "open 1 ours labelled", "open 2 plain"] {
        case.word(step);
    }
    let workload = case.entries.workloads().next().expect("an entry");
    let labels: Vec<_> = workload.spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(labels, ["app=payments", "version=v2"]);
}
