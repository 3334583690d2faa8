//! Command line arguments of the benchmark `vm-health`.

use clap::{Parser, ValueEnum};

/// Measures the health of virtual machines, from the agent's probe to Envoy
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Measure only this part; repeatable. Default: all parts
    #[arg(long, value_enum)]
    pub(crate) only: Vec<Part>,
    /// Flips of each kind
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) flips: u32,
    /// Number of simulated agents
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=60_000))]
    pub(crate) agents: u32,
    /// Number of services that they belong to
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) services: u32,
    /// Seconds over which CPU time is measured
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// Seconds for which a tenth of the agents flaps
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) flapping: u64,
    /// Seconds for which the server is down before the second storm; before the first one it
    /// restarts at once
    #[arg(long, default_value_t = 30)]
    pub(crate) outage: u64,
    /// Reports to send before memory is read
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) reports: u64,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

/// A part of the benchmark that can run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Time from a verdict until Envoy has it
    Flips,
    /// Machines that are killed, hang, become silent or shut down cleanly
    Departures,
    /// The agents of a hundred machines are restarted within a second
    Restarts,
    /// Memory and CPU time of one agent
    Agent,
    /// Memory and CPU time of the server with all simulated agents
    Steady,
    /// A tenth of the agents flaps
    Flapping,
    /// The server is killed, and all agents reconnect
    Storm,
    /// The server starts with a full store
    Cold,
    /// Memory over a million reports
    Reports,
}

impl Part {
    /// The parts that share the same simulated agents.
    pub(crate) const LOAD: [Self; 4] = [Self::Steady, Self::Flapping, Self::Storm, Self::Cold];
}

impl Arguments {
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
