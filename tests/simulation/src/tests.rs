use clap::ValueEnum as _;

use super::*;

/// Returns the first seed that fails.
fn found(sabotage: Sabotage, seeds: std::ops::Range<u64>) -> Option<u64> {
    seeds.into_iter().find(|seed| run(Plan::new(*seed), Some(sabotage), false).wrong.is_some())
}

#[test]
fn a_seed_is_a_history() {
    for seed in 0..10 {
        let once = run(Plan::new(seed), None, true);
        let again = run(Plan::new(seed), None, true);
        assert!(once.trace.len() > 10, "{once:?}");
        assert_eq!(once.trace, again.trace);
    }
}

#[test]
fn mistakes_are_found() {
    for sabotage in Sabotage::value_variants() {
        let found = found(*sabotage, 1..400);
        assert!(found.is_some(), "{sabotage:?}");
    }
}

#[test]
fn a_failure_becomes_smaller() {
    let sabotage = Some(Sabotage::NeverPublish);
    let fails = |plan: &Plan| run(plan.clone(), sabotage, false).wrong.is_some();
    let plan = (1..).map(Plan::new).find(|plan| plan.faults.len() > 20 && fails(plan)).expect("one fails");
    let before = plan.faults.len();
    let plan = shrink(plan, sabotage);
    assert!(plan.faults.len() < before && fails(&plan), "{plan:?}");
}
