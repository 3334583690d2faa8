use clap::ValueEnum as _;

use super::*;

/// Returns the first seed that fails.
fn found(injected_bug: InjectedBug, seeds: std::ops::Range<u64>) -> Option<u64> {
    seeds.into_iter().find(|seed| run(Plan::new(*seed, true), Some(injected_bug), false).violation.is_some())
}

#[test]
fn a_seed_determines_the_history() {
    for seed in 0..10 {
        let once = run(Plan::new(seed, true), None, true);
        let again = run(Plan::new(seed, true), None, true);
        assert!(once.trace.len() > 10, "{once:?}");
        assert_eq!(once.trace, again.trace);
    }
}

#[test]
fn every_injected_bug_is_found() {
    for injected_bug in InjectedBug::value_variants() {
        let found = found(*injected_bug, 1..400);
        assert!(found.is_some(), "{injected_bug:?}");
    }
}

#[test]
fn a_failure_is_shrunk() {
    let injected_bug = Some(InjectedBug::NeverPublish);
    let fails = |plan: &Plan| run(plan.clone(), injected_bug, false).violation.is_some();
    let plan = (1..)
        .map(|seed| Plan::new(seed, true))
        .find(|plan| plan.faults.len() > 20 && fails(plan))
        .expect("one fails");
    let before = plan.faults.len();
    let plan = shrink(plan, injected_bug);
    assert!(plan.faults.len() < before && fails(&plan), "{plan:?}");
}
