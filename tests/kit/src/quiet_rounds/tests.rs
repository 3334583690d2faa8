use std::collections::BTreeMap;

use super::cpu_time::{Machine, ProcessStat, tree};
use super::{QuietRounds, REPETITIONS};

const STAT: &str = "\
cpu  100 20 30 4000 50 6 7 8 9 10
cpu0 50 10 15 2000 25 3 3 4 4 5
cpu1 50 10 15 2000 25 3 4 4 5 5
intr 12345
";

#[test]
fn interrupts_are_not_charged_to_processes() {
    assert_eq!(Machine::parse(STAT), Some(Machine { cpus: 2, busy: 150, stolen: 8 }));
    assert_eq!(Machine::parse("cpu  1 2 3\n"), None);
    assert_eq!(Machine::parse(""), None);
}

#[test]
fn others_are_what_is_not_own() {
    let machine = |busy, stolen| Machine { cpus: 2, busy, stolen };
    let before = machine(1000, 50);
    for (after, own, others) in [
        (machine(1000, 50), 0, 0),
        (machine(1100, 50), 100, 0),
        (machine(1100, 50), 60, 40),
        (machine(1100, 57), 60, 47),
        // The kernel samples the machine's time, and measures that of processes.
        (machine(1100, 50), 103, 0),
        (machine(1100, 51), 103, 1),
    ] {
        assert_eq!(after.others_since(&before, own), others, "{after:?}, own {own}");
    }
}

#[test]
fn a_process_has_the_time_of_its_exited_children() {
    let line = "42 (a (b) c) S 7 42 42 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 5 1000 10";
    assert_eq!(ProcessStat::parse(line), Some(ProcessStat { parent: 7, ticks: 110 }));
    assert_eq!(ProcessStat::parse("42 (sh) S 7"), None);
}

#[test]
fn own_processes_are_all_descendants() {
    let process = |parent, ticks| ProcessStat { parent, ticks };
    let processes = BTreeMap::from([
        (1, process(0, 1000)),
        (5, process(9, 4)),
        (7, process(1, 1)),
        (9, process(7, 2)),
        (11, process(1, 500)),
    ]);
    assert_eq!(tree(&processes, 7), 7);
    assert_eq!(tree(&processes, 11), 500);
    assert_eq!(tree(&processes, 12), 0);
}

#[test]
fn few_rounds_may_stay_disturbed() {
    let mut rounds = QuietRounds::default();
    for _ in 0..3 {
        rounds.add(0.01, 0);
    }
    rounds.add(0.02, 2);
    rounds.add(0.5, 2);
    assert_eq!(rounds.rows().map(|row| row.value), [5.0, 4.0, 20.0, 50.0]);
    assert_eq!(rounds.rows()[2].holds(), Some(true));
    let others = "others used more than 10 % of the CPUs in";
    let quiet = format!("the machine was quiet: {others} 1 of 5 rounds (up to 50.0 %), after 4 repetitions");
    assert_eq!(rounds.summary(), quiet);
    rounds.add(0.2, 2);
    assert_eq!(rounds.rows()[2].holds(), Some(false));
    let busy = format!(
        "THE MACHINE WAS BUSY, measure again: {others} 2 of 6 rounds (up to 50.0 %), after 6 repetitions"
    );
    assert_eq!(rounds.summary(), busy);
}

#[tokio::test(start_paused = true)]
async fn an_error_ends_a_round() {
    let mut rounds = QuietRounds::default();
    let measured: Result<(), &str> = rounds.once(async || Err("no")).await;
    assert_eq!(measured, Err("no"));
    assert_eq!(rounds, QuietRounds::default());
    assert_eq!(rounds.once(async || Ok::<_, &str>(7)).await, Ok(7));
}

/// Measures a round of three attempts at most; its result is the number of the attempt.
async fn round_of(rounds: &mut QuietRounds, shares: &[f64]) -> usize {
    let mut attempts = shares.iter().copied().enumerate();
    let attempt = async || attempts.next().map(|(number, share)| (share, number)).ok_or("too many");
    rounds.repeat(3, attempt).await.unwrap()
}

#[tokio::test]
async fn the_least_disturbed_attempt_counts() {
    let mut rounds = QuietRounds::default();
    assert_eq!(round_of(&mut rounds, &[0.1]).await, 0);
    assert_eq!(round_of(&mut rounds, &[0.3, 0.05]).await, 1);
    assert_eq!(round_of(&mut rounds, &[0.4, 0.2, 0.3]).await, 1);
    assert_eq!(rounds, QuietRounds { rounds: 3, repeated: 3, disturbed: 1, worst: 0.2 });
}

#[tokio::test]
async fn repetitions_are_bounded_in_total() {
    let mut rounds = QuietRounds { repeated: REPETITIONS - 1, ..QuietRounds::default() };
    assert_eq!(round_of(&mut rounds, &[0.4, 0.5]).await, 0);
    assert_eq!(round_of(&mut rounds, &[0.4]).await, 0);
    assert_eq!(rounds.repeated, REPETITIONS);
}
