//! The argument of `copy`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct CopyArgs {
    /// Directory that exists, in which the program gets the name app-health-agent
    pub directory: PathBuf,
}
