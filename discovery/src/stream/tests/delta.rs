//! Tests of the incremental variant.

use super::*;
use crate::wire::NAMES_LIMIT;

fn check(steps: &[(&str, &str)]) {
    super::check(Variant::Delta, steps);
}

#[test]
fn only_differences_are_sent() {
    check(&[
        ("serve a:1 b:1", ""),
        ("CDS", "CDS#1 a b"),
        ("EDS a,b", "EDS#2 a=1 b=1"),
        ("CDS nonce=1", ""),
        ("EDS nonce=2", ""),
        ("@500", ""),
        ("serve a:0 b:1", "EDS#3 a=0"),
        ("EDS nonce=3", ""),
        ("@1000", ""),
        ("serve b:1", "CDS#4 -a; EDS#5 -a"),
        ("CDS nonce=4", ""),
        ("EDS nonce=5 -a", ""),
        ("@1500", ""),
        ("serve a:1 b:1", "CDS#6 a"),
        ("EDS a", "EDS#7 a=1"),
    ]);
}

#[test]
fn reconnecting_client_gets_only_differences() {
    let held = version(Variant::Delta, "a:1", "a");
    check(&[("serve a:1 b:1", ""), (&format!("EDS a,b =a@{held} =b@0"), "EDS#1 b=1"), ("EDS nonce=1", "")]);
    // The first request gets a response even without a difference, unless it has no names.
    check(&[("serve a:1", ""), (&format!("EDS a =a@{held}"), "EDS#1")]);
    check(&[("EDS", ""), ("serve a:1", "")]);
    check(&[("serve a:1", ""), ("CDS =gone@1", "CDS#1 a -gone")]);
}

#[test]
fn unknown_names_are_removed_and_repeated_subscriptions_resent() {
    check(&[
        ("serve a:1", ""),
        ("EDS a,x", "EDS#1 a=1 -x"),
        ("EDS nonce=1", ""),
        ("@500", ""),
        ("EDS a", "EDS#2 a=1"),
        ("EDS nonce=2", ""),
        ("@1000", ""),
        ("serve a:1 x:1", "EDS#3 x=1"),
        ("EDS nonce=3 -a", ""),
        ("@1500", ""),
        ("serve a:2 x:1", ""),
    ]);
}

#[test]
fn changed_clusters_resend_their_assignment() {
    check(&[
        ("serve a:1 b:1", ""),
        ("CDS", "CDS#1 a b"),
        ("EDS a,b", "EDS#2 a=1 b=1"),
        ("CDS nonce=1", ""),
        ("EDS nonce=2", ""),
        ("@500", ""),
        ("serve a:1! b:1", "CDS#3 a; EDS#4 a=1"),
    ]);
    // This also applies to a client that reconnects and requests endpoints after the clusters were
    // pushed.
    let held = version(Variant::Delta, "a:1", "a");
    check(&[("serve a:1", ""), ("CDS =a@1", "CDS#1 a"), (&format!("EDS a =a@{held}"), "EDS#2 a=1")]);
}

#[test]
fn rejections_and_stale_nonces_get_no_response() {
    check(&[
        ("serve a:1", ""),
        ("EDS a", "EDS#1 a=1"),
        ("EDS nonce=7", ""),
        ("EDS nonce=1 nack=bad", "nack EDS bad true"),
        ("@500", ""),
        ("serve a:1", ""),
        ("serve a:2", "EDS#2 a=2"),
        // A response is in flight, so what is requested now is sent after the acknowledgement.
        ("EDS b", ""),
        ("EDS nonce=2", "EDS#3 -b"),
    ]);
}

#[test]
fn after_a_lost_store_no_assignment_shrinks() {
    let held = version(Variant::Delta, "a:3", "a");
    check(&[
        ("startup a:1 b:1", ""),
        (&format!("EDS a,b =a@{held}"), "EDS#1 b=1"),
        ("EDS nonce=1", ""),
        ("@500", ""),
        ("startup a:2+1 b:1", "EDS#2 a=2"),
    ]);
}

#[test]
fn number_of_names_is_limited() {
    let text = "InvalidArgument resource_names: more than 65536 or 4 MiB on one stream";
    let many: Vec<String> = (0..=NAMES_LIMIT).map(|number| number.to_string()).collect();
    check(&[(&format!("CDS {}", many.join(",")), text)]);
    let long = "n".repeat(3 << 20);
    let (first, more) = (format!("CDS a{long}"), format!("CDS b{long}"));
    check(&[(&first, &format!("CDS#1 -a{long}")), (&more, text)]);
}

#[test]
fn number_of_names_that_do_not_exist_is_limited() {
    let text = "InvalidArgument resource_names: more than 4096 names do not exist";
    let hosts = |range: std::ops::Range<usize>| range.map(|number| format!("h{number}")).collect::<Vec<_>>();
    let served: String = hosts(0..5000).iter().map(|host| format!(" {host}:0")).collect();
    let mut expected = hosts(0..5000);
    expected.sort();
    let expected = expected.iter().fold("EDS#1".to_owned(), |text, host| text + &format!(" {host}=0"));
    let [known, unknown] =
        [hosts(0..5000), hosts(5000..9097)].map(|hosts| format!("EDS {}", hosts.join(",")));
    check(&[(&format!("serve{served}"), ""), (&known, &expected), (&unknown, text)]);
    check(&[(&unknown, text)]);
}
