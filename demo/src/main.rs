//! Demo of the filter: an application, Envoy with the filter, the agent, and a table of the status
//! codes that kubelet would receive.

use std::process::ExitCode;

use clap::Parser as _;
use demo::{self, Arguments};

#[tokio::main]
async fn main() -> ExitCode {
    kit::app::tls::install_provider();
    match demo::run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            demo::say(&format!("demo: {reason}\n"));
            ExitCode::FAILURE
        }
    }
}
