//! Compares kubelet's verdict with and without the filter, for written or generated cases.

use std::process::ExitCode;

use clap::Parser as _;
use conformance::command::{self, Arguments};
use kit::terminal::say;

#[tokio::main]
async fn main() -> ExitCode {
    kit::app::tls::install_provider();
    match command::run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            say(&format!("conformance: {reason}\n"));
            ExitCode::FAILURE
        }
    }
}
