//! Command line arguments of the benchmark `pages`.

use clap::Parser;

/// Measures the status pages in a browser
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Loads of each page
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) loads: u32,
    /// Changes of which the time to their appearance is measured
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) changes: u32,
    /// Seconds in which machines change while the page of ten thousand is open
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}
