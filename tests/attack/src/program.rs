//! What the programs `attack` and `soak` share.

use std::process::ExitCode;

use kit::launcher;
use kit::terminal::{say, unless_interrupted};

use crate::network;

/// Runs a program and returns its exit code: 0 if `measure` returns true. The thread of its runtime starts
/// all processes, which end with it.
pub fn run<F: Future<Output = Result<bool, String>>>(name: &str, measure: impl FnOnce() -> F) -> ExitCode {
    if let Some(code) = launcher::run_if_requested() {
        return code;
    }
    launcher::enable();
    if let Err(reason) = network::enter() {
        say(&format!("{name}: {reason}\n"));
        return ExitCode::FAILURE;
    }
    kit::app::tls::install_provider();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = async { unless_interrupted(measure(), true).await };
    match runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(measured)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            say(&format!("{name}: {reason}\n"));
            ExitCode::FAILURE
        }
    }
}
