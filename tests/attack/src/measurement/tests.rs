use super::*;

fn exchange(took: u64, verdict: Verdict) -> Exchange {
    Exchange { row: "probes", started: Instant::now(), took: Duration::from_millis(took), verdict }
}

#[test]
fn lost_and_changed_requests_are_wrong() {
    let exchanges = [
        exchange(1, Verdict::Expected),
        exchange(2, Verdict::Changed("429".to_owned())),
        exchange(3, Verdict::Lost("reset".to_owned())),
        exchange(4, Verdict::Unknown),
    ];
    let figures = Figures::of(exchanges.iter());
    assert_eq!((figures.count, figures.lost, figures.changed), (4, 1, 1));
    assert_eq!(figures.p99, Some(4.0));
    let phases = [Figures::default(), figures, Figures::default()];
    let mut row = Row { name: "probes".to_owned(), phases, bar: Some(Duration::from_millis(4)) };
    assert_eq!(row.holds(), Some(true));
    row.bar = Some(Duration::from_millis(3));
    assert_eq!(row.holds(), Some(false));
    assert_eq!(Measurement { rows: vec![row], ..Measurement::default() }.wrong(), 2);
    assert_eq!(examples(&exchanges), ["probes: changed: 429", "probes: lost: reset"]);
}

#[test]
fn a_phase_without_requests_has_no_quantiles() {
    let figures = Figures::of_times(&[], 2);
    assert_eq!((figures.count, figures.lost, figures.p50), (2, 2, None));
    assert_eq!(Figures::of_times(&[1.0, 2.0, 3.0], 0).p50, Some(2.0));
}
