//! Reports to an app-health server and to a plain one.

use super::*;

#[test]
fn reports_to_an_app_health_server() {
    check(
        unknown(),
        &[
            (0.1, Input::Opened, &[]),
            (0.2, hello(7), &["0/AwaitingVerdict"]),
            (0.3, acked(0), &[]),
            (1.0, healthy(1), &["1/ProbeSucceeded"]),
            (1.1, acked(1), &[]),
            // Without a state transition only the next heartbeat reports the change.
            (2.0, healthy(1), &[]),
            (61.0, Input::Tick, &["1/ProbeSucceeded"]),
            (61.1, acked(1), &[]),
            (70.0, unhealthy(2), &["2/HttpStatus"]),
            (70.1, acked(2), &[]),
            (130.0, Input::Tick, &["2/HttpStatus"]),
        ],
    );
}

#[test]
fn reports_to_istiod() {
    check(
        unknown(),
        &[
            (0.5, Input::Opened, &[]),
            // The unknown state is never reported to an Istio server.
            (5.5, Input::Tick, &[]),
            (6.0, healthy(1), &["istio true"]),
            (11.0, Input::Tick, &["istio true again"]),
            (36.0, Input::Tick, &["istio true again"]),
            (336.0, Input::Tick, &["istio true"]),
            (636.0, Input::Tick, &["istio true"]),
            (640.0, unhealthy(2), &["istio false HttpStatus"]),
            (645.0, Input::Tick, &["istio false HttpStatus again"]),
        ],
    );
}

#[test]
fn reports_to_istiod_are_repeated_after_a_reconnect() {
    check(
        healthy(4),
        &[
            (0.5, Input::Opened, &["istio true"]),
            (5.5, Input::Tick, &["istio true again"]),
            (30.5, Input::Tick, &["istio true again"]),
            (40.5, Input::Closed, &[]),
            (41.0, Input::Opened, &["istio true"]),
            (46.0, Input::Tick, &["istio true again"]),
        ],
    );
}

/// Only an app-health server sends the probe of a group, and only there is a missing one known.
#[test]
fn without_a_probe_istiod_gets_no_report() {
    check(
        no_probe(),
        &[
            (0.5, Input::Opened, &[]),
            (5.5, Input::Tick, &["nothing to report"]),
            (30.5, Input::Tick, &["nothing to report"]),
            (31.0, healthy(1), &["istio true"]),
        ],
    );
    check(
        no_probe(),
        &[
            (0.5, Input::Opened, &[]),
            (0.6, hello(1), &["0/NoProbe"]),
            (0.7, acked(0), &[]),
            (60.6, Input::Tick, &["0/NoProbe"]),
        ],
    );
}

#[test]
fn without_an_istio_heartbeat() {
    let Input::Status(first) = healthy(1) else { panic!("expected a status") };
    let mut reporter = Reporter::new(ReporterSettings { istio_heartbeat: None, ..settings() }, first);
    reporter.step(secs(5.0), Input::Opened, &mut || 0.5);
    reporter.step(secs(10.0), Input::Tick, &mut || 0.5);
    reporter.step(secs(36.0), Input::Tick, &mut || 0.5);
    assert_eq!(reporter.next_due(), None);
}

#[test]
fn a_late_hello() {
    check(
        healthy(1),
        &[
            (0.1, Input::Opened, &["istio true"]),
            (5.1, Input::Tick, &["istio true again"]),
            (7.0, hello(3), &["1/ProbeSucceeded"]),
            (7.1, acked(1), &[]),
            (67.0, Input::Tick, &["1/ProbeSucceeded"]),
        ],
    );
}

#[test]
fn a_pending_entry_acknowledges_nothing() {
    check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(0), &["1/ProbeSucceeded", "answer n v None"]),
            (60.0, Input::Tick, &["1/ProbeSucceeded"]),
            (61.0, hello(9), &["1/ProbeSucceeded"]),
            (71.0, Input::Tick, &["1/ProbeSucceeded again"]),
        ],
    );
}

#[test]
fn pushed_probes() {
    check(
        unknown(),
        &[
            (0.0, Input::Opened, &[]),
            (0.0, pushed("a"), &["0/AwaitingVerdict", "offer 1 a"]),
            (0.1, validated(1, "a", Ok(())), &["answer of-a a None"]),
            (0.2, acked(0), &[]),
            (1.0, pushed("b"), &["offer 1 b"]),
            (1.1, validated(1, "b", Err("no")), &["answer of-b a Some(\"no\")"]),
            (2.0, Input::Malformed { text: "?".into(), nonce: "x".into() }, &["answer x a Some(\"?\")"]),
            (3.0, pushed("c"), &["offer 1 c"]),
            (3.1, Input::Closed, &[]),
            (3.5, Input::Opened, &[]),
            // A probe that was pushed on an earlier stream gets no response.
            (3.6, validated(1, "c", Ok(())), &[]),
        ],
    );
}

#[test]
fn the_newest_state_waits_for_its_acknowledgement() {
    let until_sent =
        [(0.0, Input::Opened, &["istio true"] as &[&str]), (0.2, hello(7), &["1/ProbeSucceeded"])];
    let sent = check(healthy(1), &until_sent);
    assert_eq!((sent.unacknowledged(), sent.session()), (Some(secs(0.2)), Some(7)));
    let [opened, greeted] = until_sent;
    let acknowledged = check(healthy(1), &[opened.clone(), greeted.clone(), (0.3, acked(1), &[])]);
    assert_eq!(acknowledged.unacknowledged(), None);
    let newer = [
        opened.clone(),
        greeted.clone(),
        (0.3, unhealthy(2), &["2/HttpStatus"] as &[&str]),
        (0.4, acked(1), &[]),
    ];
    assert_eq!(
        check(healthy(1), &newer).unacknowledged(),
        Some(secs(0.2)),
        "an older state was acknowledged"
    );
    // A server without acknowledgements: none is expected once no hello has arrived for some seconds.
    let reconnected =
        [opened, greeted, (0.3, Input::Closed, &[] as &[&str]), (0.4, Input::Opened, &["istio true"])];
    let reporter = check(healthy(1), &reconnected);
    assert_eq!((reporter.unacknowledged(), reporter.session()), (Some(secs(0.2)), None));
    let [first, second, third, fourth] = reconnected;
    let repeated = [first, second, third, fourth, (5.4, Input::Tick, &["istio true again"] as &[&str])];
    assert_eq!(check(healthy(1), &repeated).unacknowledged(), None);
}

#[test]
fn a_server_is_unresponsive_only_after_a_second_report() {
    check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(7), &["1/ProbeSucceeded"]),
            (10.0, Input::Tick, &["1/ProbeSucceeded again"]),
            (12.0, healthy(1), &[]),
            (20.0, Input::Tick, &["unresponsive"]),
        ],
    );
}
