//! Implements the recipe `simulate`.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;

use clap::Parser;

use super::injected_bug::InjectedBug;
use super::plan::Plan;
use super::{Tally, run, shrink};

/// Number of failures to print; further ones are only counted.
const SHOWN: u64 = 5;
/// Random first seeds are below this, so that they are easy to copy.
const SEEDS: u64 = 1_000_000_000;

/// Simulates histories of agents, a network with faults, a discovery server and its store
#[derive(Debug, Parser)]
#[command(name = "simulate")]
pub struct Arguments {
    /// The first seed; each further case uses the next one. Default: a random one, which is printed
    #[arg(long)]
    seed: Option<u64>,
    /// Number of cases
    #[arg(long, default_value_t = 10_000)]
    cases: u64,
    /// Give one seed in ten several replicas of discovery
    #[arg(long)]
    replicas: bool,
    /// Print every event
    #[arg(long)]
    trace: bool,
    /// Remove the faults that a failure does not need
    #[arg(long)]
    shrink: bool,
    /// Inject a bug, which the simulation has to find
    #[arg(long = "inject-bug", value_name = "BUG")]
    injected_bug: Option<InjectedBug>,
}

/// Writes to standard output and ignores a closed terminal.
fn say(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Returns another seed in each process: the standard library seeds its hasher randomly.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish() % SEEDS
}

/// Runs the command and returns whether all cases passed.
pub fn main(arguments: &Arguments) -> bool {
    let Arguments { seed, cases, replicas, trace, shrink: shrinks, injected_bug } = *arguments;
    let seed = seed.unwrap_or_else(random_seed);
    say(&format!("first seed: {seed}\n"));
    let mut tally = Tally::default();
    let mut failures = 0;
    for seed in (seed..).take(usize::try_from(cases).unwrap_or(usize::MAX)) {
        let mut plan = Plan::new(seed, replicas);
        let mut history = run(plan.clone(), injected_bug, trace);
        if shrinks && history.violation.is_some() {
            plan = shrink(plan, injected_bug);
            history = run(plan.clone(), injected_bug, trace);
        }
        for line in &history.trace {
            say(&format!("{line}\n"));
        }
        tally.add(&history.tally);
        let Some(violation) = history.violation else { continue };
        failures += 1;
        if failures <= SHOWN {
            say(&format!("seed {seed}: {violation}\n"));
        }
        if shrinks && failures <= SHOWN {
            say(&format!("{plan:#?}\n"));
        }
    }
    let Tally { steps, inputs, effects, faults, seconds } = tally;
    say(&format!(
        "{cases} cases from seed {seed}: {failures} failed; {faults} faults, {steps} steps, {inputs} inputs, \
         {effects} effects, {seconds} simulated seconds\n"
    ));
    failures == 0
}
