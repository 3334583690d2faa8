//! Tests of which streams may register and report.

use super::*;

#[test]
fn rejected_registrations_change_nothing() {
    let denied =
        "close 1 PermissionDenied entry shop/payments-10.0.0.7 requires another service account | gone";
    let rows = [
        ("open 1 ours as:pay", "hello 1 s1, write, push | served"),
        ("open 1 istio as:pay", "write, push | served"),
        ("open 1 ours", "hello 1 s1, write, push | served"),
        ("open 1 ours as:web", denied),
        ("open 1 istio as:web", denied),
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
            ("istio 1 ok", "no entry | gone"),
            ("istio 7 ok", "stale | gone"),
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
    let refused = "close 1 PermissionDenied entry shop/payments-10.0.0.7 does not have the address 10.0.0.8 of this client (--peer-address-check) | gone";
    let rows = [
        (PeerAddressCheck::Require, "open 1 ours far", refused),
        (PeerAddressCheck::Require, "open 1 ours", "hello 1 s1, write, push | served"),
        (PeerAddressCheck::Require, "open 1 ours mapped", "hello 1 s1, write, push | served"),
        (PeerAddressCheck::Warn, "open 1 ours far", "other peer, hello 1 s1, write, push | served"),
        (PeerAddressCheck::Off, "open 1 ours far", "hello 1 s1, write, push | served"),
    ];
    assert_eq!(Settings::default().peer_address_check, PeerAddressCheck::Require);
    for (policy, step, expected) in rows {
        check(of(policy), auto(), &[("config group", "| gone"), (step, expected)]);
    }
}

/// A certificate of the same namespace may register for a group without a service account.
#[test]
fn another_certificate_does_not_supersede_a_live_session() {
    let refused = "close 2 FailedPrecondition an agent with another certificate reports on entry shop/payments-10.0.0.7";
    let refused = format!("{refused} | served True/ProbeSucceeded");
    let reporting = [
        ("config probe", "| gone"),
        ("open 1 ours as:pay", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
        ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
    ];
    let after = |rows: &[(&str, &str)]| {
        let rows: Vec<_> = reporting.iter().chain(rows).copied().collect();
        check(settings(), auto(), &rows);
    };
    after(&[
        ("open 2 ours as:web labelled", &refused),
        ("report 2 e 2 Terminating", "stale | served True/ProbeSucceeded"),
        ("report 1 e 1 Healthy", "ack 1 e/1 | served True/ProbeSucceeded"),
        // Without a live session, or with the same identity, it is another agent process.
        (
            "open 3 ours as:pay",
            "close 1 Aborted superseded, hello 3 s2 probe, write | served True/ProbeSucceeded",
        ),
        ("close 3", "write | served True/ProbeSucceeded"),
        ("open 4 ours as:web", "hello 4 s3 probe, write | served True/ProbeSucceeded"),
    ]);
    // A client of the plaintext listener has no certificate.
    after(&[("open 2 ours", &refused)]);
    // Envoys and Istio's agents may register, but not report.
    after(&[("open 2 istio as:web", "| served True/ProbeSucceeded"), ("istio 2 bad", &refused)]);
}

#[test]
fn labels_of_agents_count_only_if_they_are_trusted() {
    for (trust_node_labels, expected) in
        [(false, &["app=payments"][..]), (true, &["app=payments", "version=v2"])]
    {
        let mut case = Case::new(Settings { trust_node_labels, ..settings() });
        // The labels of the reporting agent take precedence over those of its Envoy.
        for step in ["config group", "open 1 ours labelled", "open 2 istio"] {
            case.word(step);
        }
        let workload = case.entries.workloads().next().expect("an entry");
        let labels: Vec<_> =
            workload.spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(labels, expected);
    }
}
