//! Command line arguments of the benchmark `agent`.

use clap::Parser;

/// Measures the agent
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Requests to send before memory is read
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: u64,
    /// Requests in a round for each behavior of the admin port, before Envoy is first ready and again
    /// after it
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) questions: u32,
    /// Runs of `wait` of each kind in a round
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) waits: u32,
    /// Rounds; each starts and kills an Envoy of each kind
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seconds over which the CPU time of an idle agent is measured
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}
