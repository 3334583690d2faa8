//! Demo of virtual machines: which ones are healthy, and to which ones Envoy sends requests.

use std::process::ExitCode;

use clap::Parser as _;
use demo_vm::{self, Arguments};
use kit::terminal::say;

#[tokio::main]
async fn main() -> ExitCode {
    match demo_vm::run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            say(&format!("demo-vm: {reason}\n"));
            ExitCode::FAILURE
        }
    }
}
