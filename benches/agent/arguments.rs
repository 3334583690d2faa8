//! How much is measured.

use clap::Parser;

/// Measures the agent
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Requests before memory is looked at
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: u64,
    /// Questions for each way in which the admin port misbehaves, before the first readiness and again after it
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) questions: u32,
    /// Runs of `wait`, of each kind
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) waits: u32,
    /// Starts and deaths of Envoy, of each kind
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// For so long the processor time of an idle agent is counted
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// What cargo adds
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}
