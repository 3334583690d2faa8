//! Demo of virtual machines: which ones are healthy, and to which ones Envoy sends requests.

use std::process::ExitCode;

use clap::Parser as _;
use demo_vm::{self, Arguments};
use kit::launcher;
use kit::terminal::say;

fn main() -> ExitCode {
    if let Some(failed) = launcher::run_if_requested() {
        return failed;
    }
    launcher::enable();
    demo()
}

// The launcher needs a runtime of one thread.
#[tokio::main(flavor = "current_thread")]
async fn demo() -> ExitCode {
    match demo_vm::run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            say(&format!("demo-vm: {reason}\n"));
            ExitCode::FAILURE
        }
    }
}
