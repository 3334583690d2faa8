//! Tests of lost streams and lost acknowledgements.

use super::*;

#[test]
fn missing_acknowledgements_close_the_stream() {
    check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (10.0, Input::Tick, &["1/ProbeSucceeded again"]),
            (20.0, Input::Tick, &["unresponsive"]),
            (20.5, Input::Opened, &["istio true"]),
        ],
    );
}

#[test]
fn an_acknowledgement_of_an_older_report_restarts_the_timeout() {
    check(
        healthy(1),
        &[
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (4.0, unhealthy(2), &["2/HttpStatus"]),
            (5.0, acked(1), &[]),
            (6.0, Input::Acknowledged("other/2".into()), &[]),
            (7.0, Input::Acknowledged("2".into()), &[]),
            (15.0, Input::Tick, &["2/HttpStatus again"]),
            (16.0, acked(2), &[]),
            (75.0, Input::Tick, &["2/HttpStatus"]),
        ],
    );
}

/// Checks `unacknowledged()` after each step.
#[test]
fn unacknowledged_time_of_a_report() {
    let mut rows: Vec<(f64, Input, &[&str])> =
        vec![(0.0, Input::Opened, &["istio true"]), (0.5, hello(3), &["1/ProbeSucceeded"])];
    assert_eq!(check(healthy(1), &rows).unacknowledged(), Some(secs(0.5)));
    rows.push((1.0, Input::Closed, &[]));
    assert_eq!(
        check(healthy(1), &rows).unacknowledged(),
        Some(secs(0.5)),
        "a lost stream does not reset the timer"
    );
    rows.push((1.4, Input::Opened, &["istio true"]));
    rows.push((6.4, Input::Tick, &["istio true again"]));
    assert_eq!(check(healthy(1), &rows).unacknowledged(), None, "an Istio server sends no acknowledgements");
}

#[test]
fn only_the_newest_state_is_sent_after_an_outage() {
    check(
        healthy(1),
        &[
            (0.1, Input::Closed, &[]),
            (0.2, unhealthy(2), &[]),
            (0.25, healthy(3), &[]),
            (0.4, unhealthy(4), &[]),
            (0.5, Input::Opened, &["istio false HttpStatus"]),
            (0.6, hello(2), &["4/HttpStatus"]),
        ],
    );
}
