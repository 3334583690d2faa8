//! Command line arguments of the benchmark `probe`.

use clap::Parser;

/// Measures the cost of a probe
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Number of rounds; each ratio compares figures of the same round
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Probes in a round for each route
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) probes: u32,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}
