//! Compares kubelet's verdict with and without the filter, for written or generated cases.

use std::process::ExitCode;

use clap::Parser as _;
use tests::conformance::command::{self, Arguments};
use tests::demo::say;

#[tokio::main]
async fn main() -> ExitCode {
    tests::app::tls::install_provider();
    match command::run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            say(&format!("conformance: {reason}\n"));
            ExitCode::FAILURE
        }
    }
}
