use super::*;

fn name() -> ProbeName {
    ProbeName { container: "app".to_owned(), kind: "livez".to_owned() }
}

/// Statistics with these counters of one probe.
fn stats<const N: usize>(success: bool, reasons: [(Reason, u64); N]) -> EnvoyStats {
    let counters = ProbeCounters { reasons: reasons.into(), success: Some(success) };
    EnvoyStats { probes: [(name(), counters)].into(), ..EnvoyStats::default() }
}

#[test]
fn results_are_differences_between_queries() {
    let mut history = ProbeHistory::default();
    history.update(stats(true, [(Reason::Ok, 100)]), 1);
    assert_eq!(history.results(&name()), [], "nothing is known of the time before");
    assert_eq!(history.last_reason(&name()), Some(Reason::Ok), "no other reason was ever counted");
    history.update(stats(true, [(Reason::Ok, 102)]), 1);
    history.update(stats(true, [(Reason::Ok, 102)]), 1);
    assert_eq!(history.results(&name()), [(Reason::Ok, 2)]);
    history.update(stats(false, [(Reason::Ok, 103), (Reason::Refused, 1)]), 1);
    assert_eq!(history.results(&name()), [(Reason::Ok, 3), (Reason::Refused, 1)], "the verdict is last");
    history.update(stats(true, [(Reason::Ok, 104), (Reason::Refused, 2)]), 1);
    assert_eq!(
        history.results(&name()),
        [(Reason::Ok, 3), (Reason::Refused, 2), (Reason::Ok, 1)],
        "the verdict is last"
    );
    assert_eq!(history.last_reason(&name()), Some(Reason::Ok));
}

#[test]
fn a_new_envoy_counts_from_zero() {
    let mut history = ProbeHistory::default();
    history.update(stats(true, [(Reason::Ok, 5)]), 1);
    history.update(stats(false, [(Reason::Timeout, 2)]), 2);
    assert_eq!(history.results(&name()), [(Reason::Timeout, 2)]);
    history.update(stats(true, [(Reason::Ok, 9), (Reason::Timeout, 2)]), 3);
    let results = history.results(&name());
    assert_eq!(results, [(Reason::Timeout, 4), (Reason::Ok, 9)]);
}

#[test]
fn the_number_of_results_is_limited() {
    let mut history = ProbeHistory::default();
    history.update(stats(true, [(Reason::Ok, 0)]), 1);
    history.update(stats(true, [(Reason::Ok, u64::MAX)]), 1);
    assert_eq!(history.results(&name()), [(Reason::Ok, 60)]);
    history.update(stats(false, [(Reason::Ok, u64::MAX), (Reason::Refused, 1)]), 1);
    assert_eq!(history.results(&name()), [(Reason::Ok, 59), (Reason::Refused, 1)]);
}

#[test]
fn without_a_difference_the_reason_is_unknown() {
    let mut history = ProbeHistory::default();
    assert_eq!(history.last_reason(&name()), None);
    history.update(stats(true, [(Reason::Ok, 3), (Reason::Refused, 1)]), 1);
    assert_eq!(history.last_reason(&name()), None);
}
