use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_interval_grows_until_live_and_restarts_with_each_process() {
    let mut intervals = AdminIntervals::new(seconds(5), false);
    for (process, now, pause) in [
        ((0, false), 0, FAST_INTERVAL),
        ((0, false), 9, FAST_INTERVAL),
        ((0, false), 10, SLOW_INTERVAL),
        ((0, true), 11, FAST_INTERVAL),
        ((0, true), 21, SLOW_INTERVAL),
        ((1, false), 22, FAST_INTERVAL),
    ] {
        intervals.timeout(AdminRequest::Ready, process, seconds(now));
        assert_eq!(intervals.pause(None, false, seconds(now)), pause, "{process:?} {now}");
    }
}

#[test]
fn the_statistics_interval_doubles() {
    let mut intervals = AdminIntervals::new(seconds(5), false);
    for _ in 0..2 {
        let mut pauses = Vec::new();
        for _ in 0..6 {
            intervals.timeout(AdminRequest::Stats, (0, true), seconds(0));
            pauses.push(intervals.pause(None, false, seconds(0)).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        intervals.timeout(AdminRequest::Ready, (0, true), seconds(0));
    }
}

#[test]
fn timeouts_double() {
    let mut intervals = AdminIntervals::new(seconds(5), false);
    let timeout = Some(RequestFailure::Timeout);
    for (failure, timeout) in
        [(timeout, 5), (timeout, 10), (timeout, 20), (timeout, 30), (None, 30), (timeout, 5)]
    {
        assert_eq!(intervals.timeout(AdminRequest::Ready, (0, true), seconds(0)), seconds(timeout));
        intervals.pause(failure, false, seconds(0));
    }
    assert_eq!(
        intervals.timeout(AdminRequest::Stats, (0, true), seconds(0)),
        seconds(5),
        "each request starts over"
    );
}

#[test]
fn the_state_is_polled_faster_in_silence_and_as_the_only_exit_detector() {
    let refused = Some(RequestFailure::Refused);
    for (only_exit_detector, in_silence, failure, pause) in [
        (false, false, None, STATE_INTERVAL),
        (false, true, None, STATE_IN_SILENCE),
        (true, false, None, STATE_ONLY_DETECTOR),
        (false, false, refused, REFUSED_PAUSE),
        (true, false, refused, REFUSED_PAUSE),
    ] {
        for request in [AdminRequest::ServerInfo, AdminRequest::State] {
            let mut intervals = AdminIntervals::new(seconds(5), only_exit_detector);
            intervals.timeout(request, (0, true), seconds(0));
            assert_eq!(
                intervals.pause(failure, in_silence, seconds(0)),
                pause,
                "{request:?} {only_exit_detector} {in_silence} {failure:?}"
            );
        }
    }
}

#[test]
fn data_path_intervals() {
    let mut intervals = DataPathIntervals::new(false);
    let refused = Some(RequestFailure::Refused);
    for (pending, process, failure, now, pause) in [
        (true, (0, false), refused, 0, FAST_INTERVAL),
        (true, (0, false), refused, 10, SLOW_INTERVAL),
        (true, (0, true), None, 11, FAST_INTERVAL),
        (false, (0, true), None, 12, DATA_PATH_EXTERNAL_INTERVAL),
        (false, (0, true), refused, 13, REFUSED_PAUSE),
        (true, (0, true), None, 14, FAST_INTERVAL),
        (true, (0, true), None, 24, SLOW_INTERVAL),
    ] {
        assert_eq!(
            intervals.pause(pending, process, failure, failure.is_some(), seconds(now)),
            pause,
            "{now}"
        );
    }
}

#[test]
fn data_path_intervals_of_a_child() {
    let mut intervals = DataPathIntervals::new(true);
    for (failure, failing, pause) in [
        (None, false, DATA_PATH_INTERVAL),
        (None, true, DATA_PATH_FAILED_INTERVAL),
        (Some(RequestFailure::Timeout), true, DATA_PATH_FAILED_INTERVAL),
        (Some(RequestFailure::Refused), true, DATA_PATH_FAILED_INTERVAL),
    ] {
        assert_eq!(intervals.pause(false, (0, true), failure, failing, seconds(0)), pause, "{failure:?}");
    }
}
