//! Tests of the final report at shutdown.

use super::*;

#[test]
fn final_report_to_an_app_health_server() {
    check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (0.1, acked(1), &[]),
            (5.0, Input::Shutdown, &[]),
            (5.1, terminating(2), &["2/Terminating"]),
            (5.2, acked(2), &["delivered"]),
            (5.3, Input::Tick, &["done"]),
        ],
    );
}

#[test]
fn final_report_after_a_drain() {
    let reporter = check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (0.1, acked(1), &[]),
            // A drain alone does not end the stream.
            (5.0, draining(2), &["2/Draining"]),
            (5.1, acked(2), &[]),
            (65.0, Input::Tick, &["2/Draining"]),
            (65.1, acked(2), &[]),
            // The agent's own state follows.
            (70.0, Input::Shutdown, &[]),
            (70.01, terminating(3), &["3/Terminating"]),
            (70.02, acked(3), &["delivered"]),
            (70.05, Input::Closed, &["done"]),
            (71.0, Input::Opened, &[]),
        ],
    );
    assert_eq!((reporter.next_due(), reporter.is_done()), (None, true));
}

#[test]
fn a_report_is_the_final_one_only_after_the_request_to_shut_down() {
    let reporter = check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (1.0, terminating(2), &["istio false Terminating"]),
            (2.0, Input::Shutdown, &["delivered"]),
        ],
    );
    assert!(!reporter.is_done(), "the stream may still end in order");
}

#[test]
fn final_report_to_istiod() {
    check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (1.0, terminating(2), &["istio false Terminating"]),
            (1.05, Input::Shutdown, &[]),
            (1.1, Input::Tick, &["delivered"]),
            (1.2, Input::Tick, &["done"]),
        ],
    );
}

#[test]
fn final_report_to_an_unresponsive_unreachable_or_returning_server() {
    check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (1.0, terminating(2), &["2/Terminating"]),
            (1.0, Input::Shutdown, &[]),
            (3.0, Input::Tick, &["done"]),
        ],
    );
    check(
        healthy(1),
        &[(1.0, terminating(2), &[]), (1.0, Input::Shutdown, &[]), (3.0, Input::Tick, &["done"])],
    );
    check(
        healthy(1),
        &[
            (1.0, terminating(2), &[]),
            (1.0, Input::Shutdown, &[]),
            (1.1, Input::Opened, &["istio false Terminating"]),
            (1.15, hello(4), &["2/Terminating"]),
            (1.2, acked(2), &["delivered"]),
        ],
    );
}
