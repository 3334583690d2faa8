//! The deterministic simulation of reporting: the brains of both sides, the agent's and discovery's, in a world that is made up from a
//! seed. Messages are late, lost, doubled, and overtaken by those of newer streams; agents and servers die and come back; disks are slow
//! and forget what they had not yet stored; clocks jump. In the end the endpoints have to be the truth, and on the way nothing may
//! happen that is never right.
//!
//! Everything is PURE: no clock, no task, no socket. One seed is one history.

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

/// How much happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Events.
    pub steps: u64,
    /// Inputs of the brains.
    pub inputs: u64,
    /// Effects of the brains.
    pub effects: u64,
    /// Faults.
    pub faults: usize,
    /// Virtual time.
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

/// What became of a plan.
#[derive(Debug)]
pub struct History {
    /// What should not have been.
    pub wrong: Option<String>,
    /// Line by line, if it was asked for.
    pub trace: Vec<String>,
    /// How much happened.
    pub tally: Tally,
}

/// Lives through a plan, perhaps with a mistake.
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

/// Leaves out faults, one after another, as long as the same goes wrong without them too.
pub fn shrink(mut plan: Plan, sabotage: Option<Sabotage>) -> Plan {
    // Numbers differ, and so do names.
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
