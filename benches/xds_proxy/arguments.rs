//! Command line arguments of the benchmark `xds-proxy`.

use clap::Parser;

/// Measures xDS through the agent
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Pushes of each kind in a round
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pushes: u32,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}
