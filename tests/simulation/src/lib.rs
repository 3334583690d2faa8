//! The deterministic simulation of health reports: the state machines of the agent and of discovery
//! in a world generated from a seed. Messages are delayed, lost, duplicated, and overtaken by those
//! of newer streams; agents and servers crash and restart; disks are slow and lose writes that were
//! not durable yet; clocks jump. At the end the endpoints must be exactly the healthy machines, and
//! on the way no invariant may be violated.
//!
//! There is no real clock, task or socket, so the same seed always gives the same history.

pub mod command;
pub mod configuration;
pub mod disk;
pub mod envoy;
pub mod network;
pub mod plain;
pub mod plan;
pub mod process;
pub mod random;
pub mod sabotage;
pub mod truth;
pub mod watch;
pub mod world;

pub use plan::Plan;
use sabotage::Sabotage;
use world::World;

/// Counts of one or more histories.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub steps: u64,
    /// Inputs of the state machines.
    pub inputs: u64,
    /// Effects of the state machines.
    pub effects: u64,
    pub faults: usize,
    pub seconds: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.inputs += other.inputs;
        self.effects += other.effects;
        self.faults += other.faults;
        self.seconds += other.seconds;
    }
}

/// The result of running a plan.
#[derive(Debug)]
pub struct History {
    /// The first violated invariant, or difference at the end.
    pub wrong: Option<String>,
    /// The events line by line, if requested.
    pub trace: Vec<String>,
    pub tally: Tally,
}

/// Runs a plan, optionally with an injected bug.
pub fn run(plan: Plan, sabotage: Option<Sabotage>, trace: bool) -> History {
    let faults = plan.faults.len();
    let mut world = World::new(plan, sabotage);
    world.trace = trace.then(Vec::new);
    let wrong = world.run().and_then(|()| world.compare()).err();
    let tally = Tally {
        steps: world.watch.steps,
        inputs: world.watch.inputs,
        effects: world.watch.effects,
        faults,
        seconds: world.now.as_secs(),
    };
    History { wrong, trace: world.trace.unwrap_or_default(), tally }
}

/// Removes faults one by one, as long as the same failure occurs without them.
pub fn shrink(mut plan: Plan, sabotage: Option<Sabotage>) -> Plan {
    // Failures are compared without numbers and names, which differ.
    let kind = |plan: &Plan| {
        let wrong = run(plan.clone(), sabotage, false).wrong?;
        let words = wrong.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
        Some(words.take(6).map(str::to_owned).collect::<Vec<_>>())
    };
    let original = kind(&plan);
    let fails = |plan: &Plan| original.is_some() && kind(plan) == original;
    loop {
        let shorter = (0..plan.faults.len()).find_map(|index| {
            let mut shorter = plan.clone();
            shorter.faults.remove(index);
            fails(&shorter).then_some(shorter)
        });
        match shorter {
            Some(shorter) => plan = shorter,
            None => return plan,
        }
    }
}

#[cfg(test)]
mod tests;
