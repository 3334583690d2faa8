//! How much is measured.

use clap::{Parser, ValueEnum};

/// Measures the health of virtual machines, from the agent's probe to Envoy
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Only this; repeatable. Default: everything
    #[arg(long, value_enum)]
    pub(crate) only: Vec<Part>,
    /// Flips of each kind
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) flips: u32,
    /// Agents in the crowd
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=60_000))]
    pub(crate) agents: u32,
    /// Services that they belong to
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) services: u32,
    /// For so long processor time is counted
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// For so many seconds a tenth of the crowd flaps
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) flapping: u64,
    /// For so many seconds the server is away before the second storm; before the first it is not
    #[arg(long, default_value_t = 30)]
    pub(crate) outage: u64,
    /// Reports before memory is looked at
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) reports: u64,
    /// What cargo adds
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// A verdict until Envoy has it
    Flips,
    /// Machines that die, hang, fall silent, or say goodbye
    Departures,
    /// Memory and processor time of one agent
    Agent,
    /// Memory and processor time of the server with the crowd
    Steady,
    /// A tenth of the crowd flaps
    Flapping,
    /// The server is killed, and all come back
    Storm,
    /// The server starts with all its entries
    Cold,
    /// Memory over a million reports
    Reports,
}

impl Part {
    /// What needs the same crowd.
    pub(crate) const CROWD: [Self; 4] = [Self::Steady, Self::Flapping, Self::Storm, Self::Cold];
}

impl Arguments {
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
