//! Tests of the state-of-the-world variant.

use super::*;

fn check(steps: &[(&str, &str)]) {
    super::check(Variant::Sotw, steps);
}

#[test]
fn first_request_gets_a_response_then_only_changes() {
    check(&[
        ("CDS", "CDS#1"),
        ("CDS nonce=1", ""),
        ("@200", ""),
        ("serve a:2 b:1", "CDS#2 a b"),
        ("CDS nonce=2", ""),
        ("EDS a,b", "EDS#3 a=2 b=1"),
        ("EDS a,b nonce=3", ""),
        ("@400", ""),
        // Only changed assignments are sent, including an empty one.
        ("serve a:1 b:1", "EDS#4 a=1"),
        ("EDS a,b nonce=4", ""),
        ("@600", ""),
        ("serve a:1 b:0", "EDS#5 b=0"),
        ("EDS a,b nonce=5", ""),
        ("serve a:1 b:0", ""),
        // The cluster is removed by CDS. A client that still requests its endpoints, as a static
        // cluster does, gets none.
        ("@800", ""),
        ("serve a:1", "CDS#6 a; EDS#7 b"),
    ]);
}

#[test]
fn unknown_names_get_empty_assignments_and_no_names_get_none() {
    check(&[
        ("EDS", ""),
        ("serve a:1", ""),
        ("EDS x", "EDS#1 x"),
        ("EDS x nonce=1", ""),
        // Only the added names are sent.
        ("EDS x,a nonce=1", "EDS#2 a=1"),
        ("EDS x,a nonce=2", ""),
        ("EDS x nonce=2", ""),
        ("@500", ""),
        ("serve a:2 x:3", "EDS#3 x=3"),
    ]);
}

#[test]
fn clusters_by_name() {
    check(&[
        ("serve a:1 b:1", ""),
        ("CDS a", "CDS#1 a"),
        ("CDS a nonce=1", ""),
        ("CDS * nonce=1", "CDS#2 a b"),
        ("CDS * nonce=2", ""),
        ("CDS b nonce=2", "CDS#3 b"),
    ]);
}

#[test]
fn one_response_is_in_flight_and_the_latest_state_is_sent() {
    check(&[
        ("serve a:1", ""),
        ("EDS a", "EDS#1 a=1"),
        ("serve a:2", ""),
        ("serve a:3", ""),
        ("@1000", ""),
        ("EDS a nonce=1", "EDS#2 a=3"),
        // A request with an older nonce is ignored.
        ("EDS a,b nonce=1", ""),
        ("EDS a nonce=2", ""),
        // At most ten responses are pushed per second.
        ("serve a:4", ""),
        ("@1099", ""),
        ("@1100", "EDS#3 a=4"),
    ]);
}

#[test]
fn changed_clusters_resend_their_assignment() {
    check(&[
        ("serve a:1", ""),
        ("CDS", "CDS#1 a"),
        ("EDS a", "EDS#2 a=1"),
        ("CDS nonce=1", ""),
        ("EDS a nonce=2", ""),
        ("@1000", ""),
        ("serve a:1!", "CDS#3 a"),
        // Envoy warms the changed cluster and repeats the acknowledgement that it sent before.
        ("EDS a nonce=2", "EDS#4 a=1"),
        ("CDS nonce=3", ""),
        ("EDS a nonce=4", ""),
    ]);
    // The request may be the acknowledgement of an earlier push.
    check(&[
        ("serve a:1", ""),
        ("CDS", "CDS#1 a"),
        ("EDS a", "EDS#2 a=1"),
        ("CDS nonce=1", ""),
        ("@1000", ""),
        ("serve a:1!", "CDS#3 a"),
        ("EDS a nonce=2", "EDS#4 a=1"),
        ("EDS a nonce=4", ""),
    ]);
}

#[test]
fn clusters_are_sent_before_their_endpoints() {
    check(&[
        ("serve a:1", ""),
        ("CDS", "CDS#1 a"),
        // A static cluster requests a name whose cluster does not exist yet.
        ("EDS a,b", "EDS#2 a=1 b"),
        ("EDS a,b nonce=2", ""),
        ("@1000", ""),
        ("serve a:2 b:1", "EDS#3 a=2"),
        ("CDS nonce=1", "CDS#4 a b"),
        ("EDS a,b nonce=3", "EDS#5 a=2 b=1"),
    ]);
}

#[test]
fn rejected_responses_are_not_repeated() {
    check(&[
        ("serve a:1 b:1", ""),
        ("CDS", "CDS#1 a b"),
        ("CDS nonce=1 nack=bad", "nack CDS bad true"),
        ("EDS a", "EDS#2 a=1"),
        ("EDS a nonce=2 nack=ugly", "nack EDS ugly true"),
        ("@1000", ""),
        ("serve a:1 b:1", ""),
        ("serve a:2 b:1", "EDS#3 a=2"),
        ("EDS a nonce=3 nack=ugly", "nack EDS ugly false"),
        ("@2000", ""),
        ("serve a:2", "CDS#4 a"),
        ("CDS nonce=4", ""),
    ]);
}

#[test]
fn after_a_lost_store_no_assignment_shrinks() {
    let held = version(Variant::Sotw, "a:3 b:1", "a,b");
    assert!(held.ends_with("-3.1"), "{held}");
    check(&[
        ("startup a:0 b:1", ""),
        // The server knows as many endpoints of b as the client has, but fewer of a.
        (&format!("EDS a,b version={held}"), "EDS#1 b=1"),
        ("EDS a,b nonce=1", ""),
        ("@500", ""),
        ("startup a:2 b:1", ""),
        // One of three workloads reconnects unhealthy. Now all are known, so the assignment is
        // sent.
        ("startup a:2+1 b:1", "EDS#2 a=2"),
        ("EDS a,b nonce=2", ""),
        ("@1000", ""),
        ("startup a:1+1 b:1", "EDS#3 a=1"),
    ]);
    // The startup grace ends.
    check(&[
        ("startup a:0", ""),
        (&format!("EDS a version={held}"), ""),
        ("@500", ""),
        ("serve a:1", "EDS#1 a=1"),
    ]);
    // A client that has no endpoints gets a response immediately.
    check(&[("startup a:0", ""), ("EDS a", "EDS#1 a=0")]);
}

/// Envoy keeps the endpoints of an assignment if it rejects the next one.
#[test]
fn versions_count_the_endpoints_that_a_client_keeps() {
    let mut stream = AdsStream::new(Variant::Sotw, None);
    let mut now = Duration::ZERO;
    let mut before = snapshot("a:3 b:1", false, None);
    for (served, answer, numbers) in [
        ("a:3 b:1", "", "-3.1"),
        ("a:0 b:1", "nonce=1", "-0.1"),
        // Without the rejected assignment.
        ("a:0 b:2", "nonce=2 nack=no", "-3.2"),
        ("a:1 b:2", "nonce=3 nack=no", "-1.1"),
        ("a:2 b:2", "nonce=4", "-2.1"),
        ("a:2 b:4", "nonce=5", "-2.4"),
        ("a:1 b:4", "nonce=6", "-1.4"),
    ] {
        let request = request(&format!("EDS a,b {answer}"), Variant::Sotw);
        let after = snapshot(served, false, None);
        now += Duration::from_secs(1);
        let first = stream.step(now, Input::Request(Box::new(request)), &before);
        let second = stream.step(now, Input::Poll, &after);
        before = after;
        let versions: Vec<String> = first
            .into_iter()
            .chain(second)
            .filter_map(|effect| match effect {
                Effect::Send(response) => Some(response.version),
                _ => None,
            })
            .collect();
        let version = versions.last().expect("a response");
        assert!(version.ends_with(numbers), "{served} {answer}: {version}");
    }
}
