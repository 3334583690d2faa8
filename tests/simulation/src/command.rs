//! Implements the recipe `simulate`.

use std::io::Write as _;

use clap::Parser;

use super::plan::Plan;
use super::sabotage::Sabotage;
use super::{Tally, run, shrink};

/// Number of failures to print; further ones are only counted.
const SHOWN: u64 = 5;

/// Simulates histories of agents, a network with faults, a discovery server and its store
#[derive(Debug, Parser)]
#[command(name = "simulate")]
pub struct Arguments {
    /// The first seed; each further case uses the next one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of cases
    #[arg(long, default_value_t = 10_000)]
    cases: u64,
    /// Print every event
    #[arg(long)]
    trace: bool,
    /// Remove the faults that a failure does not need
    #[arg(long)]
    shrink: bool,
    /// Inject a bug, which the simulation has to find
    #[arg(long, value_name = "MISTAKE")]
    sabotage: Option<Sabotage>,
}

/// Writes to standard output and ignores a closed terminal.
fn say(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Runs the command and returns whether all cases passed.
pub fn main(arguments: &Arguments) -> bool {
    let Arguments { seed, cases, trace, shrink: shrinks, sabotage } = *arguments;
    let mut tally = Tally::default();
    let mut failures = 0;
    for seed in (seed..).take(usize::try_from(cases).unwrap_or(usize::MAX)) {
        let mut plan = Plan::new(seed);
        let mut history = run(plan.clone(), sabotage, trace);
        if shrinks && history.wrong.is_some() {
            plan = shrink(plan, sabotage);
            history = run(plan.clone(), sabotage, trace);
        }
        for line in &history.trace {
            say(&format!("{line}\n"));
        }
        tally.add(&history.tally);
        let Some(wrong) = history.wrong else { continue };
        failures += 1;
        if failures <= SHOWN {
            say(&format!("seed {seed}: {wrong}\n"));
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
