use probe::{ProbePath, Reason};

use super::ProberStats;

#[test]
fn the_last_result_is_kept() {
    let path = ProbePath::parse("/app-health/app/readyz").expect("a path");
    let entry = ProberStats::default();
    let lines = [Reason::Ok, Reason::Refused, Reason::Refused].map(|reason| entry.record(&path, reason));
    let texts = lines.map(|line| line.map(|line| line.text));
    assert_eq!(texts, [None, Some("probe app/readyz: refused, was ok".to_owned()), None]);
}

#[test]
fn metric_ids_are_kept_by_reason() {
    let entry = ProberStats::default();
    entry.set_metric(Some(Reason::Ok), 7);
    entry.set_metric(None, 9);
    for (reason, id) in [(Some(Reason::Ok), Some(7)), (None, Some(9)), (Some(Reason::Busy), None)] {
        assert_eq!(entry.metric(reason), id);
    }
}
