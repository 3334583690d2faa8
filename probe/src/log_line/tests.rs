use proptest::prelude::*;

use super::{LogLimiter, LogLine};
use crate::path::ProbePath;
use crate::reason::Reason;

const SECOND: u64 = 1_000_000_000;

fn path(text: &str) -> ProbePath {
    ProbePath::parse(text).expect(text)
}

#[test]
fn each_change_of_the_result_is_logged() {
    let warn = |text: &str| Some(LogLine { warn: true, text: text.into() });
    let info = |text: &str| Some(LogLine { warn: false, text: text.into() });
    let mut before = None;
    let path = path("/app-health/app/readyz");
    for (reason, expected) in [
        (Reason::Ok, None),
        (Reason::Ok, None),
        (Reason::Refused, warn("probe app/readyz: refused, was ok")),
        (Reason::Refused, None),
        (Reason::Timeout, warn("probe app/readyz: timeout, was refused")),
        (Reason::Application, warn("probe app/readyz: application, was timeout")),
        (Reason::OkRedirect, info("probe app/readyz: ok_redirect, was application")),
        (Reason::Ok, info("probe app/readyz: ok, was ok_redirect")),
        (Reason::Ok, None),
    ] {
        assert_eq!(LogLine::of_change(&path, before, reason), expected, "{reason:?}");
        before = Some(reason);
    }
    assert_eq!(
        LogLine::of_change(&path, None, Reason::Busy),
        warn("probe app/readyz: busy"),
        "a failure of the first probe is logged"
    );
}

#[test]
fn at_most_ten_lines_a_minute_are_logged() {
    let start = 1000 * SECOND;
    for (name, times, expected) in [
        ("a minute later", vec![(start, 12), (start + 60 * SECOND, 1)], vec![10, 1]),
        ("just before", vec![(start, 12), (start + 60 * SECOND - 1, 1)], vec![10, 0]),
        ("the window starts with its first line", vec![(start, 1), (start + 59 * SECOND, 10)], vec![1, 9]),
        ("the clock goes back", vec![(start, 12), (start - 1, 11)], vec![10, 10]),
        ("from the beginning of time", vec![(0, 11), (u64::MAX, 11)], vec![10, 10]),
    ] {
        let mut budget = LogLimiter::default();
        let admitted: Vec<_> = times
            .iter()
            .map(|(now, lines)| (0..*lines).filter(|_| budget.check(*now).is_some()).count())
            .collect();
        assert_eq!(admitted, expected, "{name}");
    }
    let mut budget = LogLimiter::default();
    let suppressed: Vec<_> = (0..25).filter_map(|_| budget.check(start)).collect();
    assert_eq!(suppressed, [0; 10]);
    assert_eq!(budget.check(start + 61 * SECOND), Some(15));
    assert_eq!(budget.check(start + 61 * SECOND), Some(0), "the number of suppressed lines is reported once");
}

proptest! {
    #[test]
    fn no_minute_has_more_than_twenty_lines(
        steps in prop::collection::vec(0..20 * SECOND, 1..200),
    ) {
        let mut budget = LogLimiter::default();
        let mut now = 0;
        let mut lines = Vec::new();
        let mut told = 0;
        for step in &steps {
            now += step;
            if let Some(suppressed) = budget.check(now) {
                lines.push(now);
                told += 1 + suppressed;
            }
        }
        // Two windows may be adjacent, so a minute may contain the lines of both.
        for window in lines.windows(21) {
            prop_assert!(window[20] - window[0] >= 60 * SECOND);
        }
        told += budget.check(now + 60 * SECOND).map_or(0, |suppressed| suppressed);
        prop_assert_eq!(told, steps.len() as u64, "every line is logged or counted");
    }
}
