//! The main job, visible: an application, Envoy with the filter, the agent, and a table of what kubelet would see.

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
