//! Tests of lost streams, lost acknowledgements, and streams that are replaced.

use super::*;

#[test]
fn missing_acknowledgements_close_the_stream() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (10.0, Input::Tick, &["1/ProbeSucceeded again"]),
            (20.0, Input::Tick, &["close"]),
            (20.3, Input::Tick, &["connect"]),
            (20.5, Input::Opened, &["istio true"]),
        ],
    );
}

#[test]
fn an_acknowledgement_of_an_older_report_restarts_the_timeout() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
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
    let mut rows: Vec<(f64, Input, &[&str])> = vec![
        (0.0, Input::Tick, &["connect"]),
        (0.0, Input::Opened, &["istio true"]),
        (0.5, hello(3), &["1/ProbeSucceeded"]),
    ];
    assert_eq!(check(healthy(1), &rows).unacknowledged(), Some(secs(0.5)));
    rows.push((1.0, TRANSIENT, &[]));
    assert_eq!(
        check(healthy(1), &rows).unacknowledged(),
        Some(secs(0.5)),
        "a lost stream does not reset the timer"
    );
    rows.push((1.3, Input::Tick, &["connect"]));
    rows.push((1.4, Input::Opened, &["istio true"]));
    rows.push((6.4, Input::Tick, &["istio true again"]));
    assert_eq!(check(healthy(1), &rows).unacknowledged(), None, "an Istio server sends no acknowledgements");
}

#[test]
fn only_the_newest_state_is_sent_after_an_outage() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, TRANSIENT, &[]),
            (0.2, unhealthy(2), &[]),
            (0.25, healthy(3), &[]),
            (0.3, Input::Tick, &["connect"]),
            (0.4, unhealthy(4), &[]),
            (0.5, Input::Opened, &["istio false HttpStatus"]),
            (0.6, hello(2), &["4/HttpStatus"]),
        ],
    );
}

#[test]
fn short_streams_do_not_reset_the_backoff() {
    // Each pause is the middle of its range: 100 ms to 500 ms, 1 s, 2 s, 4 s; after a rejection 100
    // ms to 30 s.
    check(
        unknown(),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, Input::Opened, &[]),
            (1.0, TRANSIENT, &[]),
            (1.3, Input::Tick, &["connect"]),
            (1.3, Input::Opened, &[]),
            (2.3, TRANSIENT, &[]),
            (2.85, Input::Tick, &["connect"]),
            (2.85, Input::Opened, &[]),
            (3.85, TRANSIENT, &[]),
            (4.9, Input::Tick, &["connect"]),
            (4.9, REJECTED, &[]),
            (19.95, Input::Tick, &["connect"]),
            (20.0, Input::Opened, &[]),
            (25.0, Input::Tick, &[]),
            (50.0, Input::Tick, &[]),
            (51.0, TRANSIENT, &[]),
            (51.3, Input::Tick, &["connect"]),
        ],
    );
}

/// A server that restarts a second time gets the state of the workload as soon as after the first
/// time.
#[test]
fn a_stream_of_five_seconds_resets_the_backoff() {
    check(
        unknown(),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.0, TRANSIENT, &[]),
            (0.3, Input::Tick, &["connect"]),
            (0.3, TRANSIENT, &[]),
            (0.85, Input::Tick, &["connect"]),
            (0.85, Input::Opened, &[]),
            (5.85, TRANSIENT, &[]),
            (6.15, Input::Tick, &["connect"]),
        ],
    );
}

#[test]
fn changed_files_reopen_the_stream_once() {
    check(
        healthy(1),
        &[
            (0.0, Input::FilesChanged, &["connect"]),
            (0.0, Input::Opened, &["istio true"]),
            (0.0, hello(3), &["1/ProbeSucceeded"]),
            (0.1, acked(1), &[]),
            (10.0, Input::FilesChanged, &[]),
            (20.0, Input::FilesChanged, &[]),
            (25.0, Input::Tick, &["close", "connect"]),
            (25.1, Input::Opened, &["istio true"]),
            (25.2, hello(4), &["1/ProbeSucceeded"]),
        ],
    );
}

/// The attempt in progress started with the previous files.
#[test]
fn files_that_change_during_a_connect_reopen_the_stream() {
    check(
        healthy(1),
        &[
            (0.0, Input::Tick, &["connect"]),
            (0.1, Input::FilesChanged, &[]),
            (0.2, TRANSIENT, &[]),
            // This attempt uses the new files; a further change follows below.
            (0.5, Input::Tick, &["connect"]),
            (0.6, Input::Opened, &["istio true"]),
            (0.6, hello(3), &["1/ProbeSucceeded"]),
            (0.7, acked(1), &[]),
            (50.0, TRANSIENT, &[]),
            (50.3, Input::Tick, &["connect"]),
            (50.4, Input::FilesChanged, &[]),
            (51.0, Input::Opened, &["istio true"]),
            (51.0, hello(4), &["1/ProbeSucceeded"]),
            (51.1, acked(1), &[]),
            (66.0, Input::Tick, &["close", "connect"]),
        ],
    );
}
