//! The deterministic simulation of health reports: the state machines of the agent and of discovery
//! in a world generated from a seed. Messages are delayed, lost, duplicated, and overtaken by those
//! of newer streams; agents and servers crash and restart, also many agents at once; disks are slow and
//! lose writes that were not durable yet; servers that share a store lose it; clocks jump. At the end the endpoints must be exactly the healthy machines, and
//! on the way no invariant may be violated.
//!
//! There is no real clock, task or socket, so the same seed always gives the same history.

pub mod api_server;
pub mod command;
pub mod configuration;
pub mod disk;
pub mod envoy;
pub mod final_check;
pub mod injected_bug;
pub mod invariants;
pub mod istio_agent;
pub mod network;
pub mod plan;
pub mod process;
pub mod random;
pub mod world;

use injected_bug::InjectedBug;
pub use plan::Plan;
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
    pub violation: Option<String>,
    /// The events line by line, if requested.
    pub trace: Vec<String>,
    pub tally: Tally,
}

/// Runs a plan, optionally with an injected bug.
pub fn run(plan: Plan, injected_bug: Option<InjectedBug>, trace: bool) -> History {
    let faults = plan.faults.len();
    let mut world = World::new(plan, injected_bug);
    world.trace = trace.then(Vec::new);
    let violation = world.run().and_then(|()| world.compare()).err();
    let tally = Tally {
        steps: world.invariants.steps,
        inputs: world.invariants.inputs,
        effects: world.invariants.effects,
        faults,
        seconds: world.now.as_secs(),
    };
    History { violation, trace: world.trace.unwrap_or_default(), tally }
}

/// Removes faults one by one, as long as the same failure occurs without them.
pub fn shrink(mut plan: Plan, injected_bug: Option<InjectedBug>) -> Plan {
    // Failures are compared without numbers and names, which differ.
    let kind = |plan: &Plan| {
        let violation = run(plan.clone(), injected_bug, false).violation?;
        let words = violation.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
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
