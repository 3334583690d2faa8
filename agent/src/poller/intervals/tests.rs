use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn until_live_eager_then_patient_and_anew_in_each_life() {
    let mut pace = AdminPace::new(seconds(5), false);
    for (life, now, pause) in [
        ((0, false), 0, EAGER),
        ((0, false), 9, EAGER),
        ((0, false), 10, PATIENT),
        ((0, true), 11, EAGER),
        ((0, true), 21, PATIENT),
        ((1, false), 22, EAGER),
    ] {
        pace.deadline(AdminQuestion::Ready, life, seconds(now));
        assert_eq!(pace.pause(None, seconds(now)), pause, "{life:?} {now}");
    }
}

#[test]
fn statistics_are_asked_ever_less_often() {
    let mut pace = AdminPace::new(seconds(5), false);
    for _ in 0..2 {
        let mut pauses = Vec::new();
        for _ in 0..6 {
            pace.deadline(AdminQuestion::Stats, (0, true), seconds(0));
            pauses.push(pace.pause(None, seconds(0)).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        pace.deadline(AdminQuestion::Ready, (0, true), seconds(0));
    }
}

#[test]
fn deadlines_double_after_timeouts() {
    let mut pace = AdminPace::new(seconds(5), false);
    let timeout = Some(Failure::Timeout);
    for (failure, deadline) in
        [(timeout, 5), (timeout, 10), (timeout, 20), (timeout, 30), (None, 30), (timeout, 5)]
    {
        assert_eq!(pace.deadline(AdminQuestion::Ready, (0, true), seconds(0)), seconds(deadline));
        pace.pause(failure, seconds(0));
    }
    assert_eq!(
        pace.deadline(AdminQuestion::Stats, (0, true), seconds(0)),
        seconds(5),
        "each request starts over"
    );
}

#[test]
fn server_info_is_asked_more_often_where_nothing_else_shows_death() {
    let refused = Some(Failure::Refused);
    for (alone, failure, pause) in [
        (false, None, SERVER_INFO),
        (true, None, SERVER_INFO_ALONE),
        (false, refused, REFUSED),
        (true, refused, REFUSED),
    ] {
        let mut pace = AdminPace::new(seconds(5), alone);
        pace.deadline(AdminQuestion::ServerInfo, (0, true), seconds(0));
        assert_eq!(pace.pause(failure, seconds(0)), pause, "{alone} {failure:?}");
    }
}

#[test]
fn the_data_path() {
    let mut pace = DataPathPace::new(false);
    let refused = Some(Failure::Refused);
    for (pending, life, failure, now, pause) in [
        (true, (0, false), refused, 0, EAGER),
        (true, (0, false), refused, 10, PATIENT),
        (true, (0, true), None, 11, EAGER),
        (false, (0, true), None, 12, DATA_PATH_WATCH),
        (false, (0, true), refused, 13, REFUSED),
        (true, (0, true), None, 14, EAGER),
        (true, (0, true), None, 24, PATIENT),
    ] {
        assert_eq!(pace.pause(pending, life, failure, failure.is_some(), seconds(now)), pause, "{now}");
    }
}

#[test]
fn the_data_path_of_a_child() {
    let mut pace = DataPathPace::new(true);
    for (failure, failing, pause) in [
        (None, false, DATA_PATH_MET),
        (None, true, DATA_PATH_FAILED),
        (Some(Failure::Timeout), true, DATA_PATH_FAILED),
        (Some(Failure::Refused), true, DATA_PATH_FAILED),
    ] {
        assert_eq!(pace.pause(false, (0, true), failure, failing, seconds(0)), pause, "{failure:?}");
    }
}
