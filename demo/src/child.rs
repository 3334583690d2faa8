//! Child processes that end with the demo, also if the demo is killed with SIGKILL.
//!
//! The demo starts a child by executing itself with a hidden first argument. That process asks the
//! kernel for a signal when its parent exits (`PR_SET_PDEATHSIG`) and then becomes the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;
use tokio::process::Command;

/// The hidden first argument.
const LAUNCH: &str = "launch-child";

/// Returns a command that runs `program` until it ends or this process exits.
///
/// # Errors
/// Fails if the path of this executable is unknown.
pub(crate) fn command(program: &OsStr) -> Result<Command, String> {
    let demo = std::env::current_exe().map_err(|error| format!("the demo's own path: {error}"))?;
    let mut command = Command::new(demo);
    command.arg(LAUNCH).arg(process::id().to_string()).arg(program).kill_on_drop(true);
    Ok(command)
}

/// Becomes the program if this process was started by [`command`]. Returns the reason if it cannot,
/// and `None` if this is the demo itself.
pub(crate) fn launch() -> Option<String> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let [_, launch, parent, program, rest @ ..] = arguments.as_slice() else { return None };
    if launch != LAUNCH {
        return None;
    }
    if let Err(error) = set_pdeathsig(Signal::SIGKILL) {
        return Some(format!("the parent-death signal: {error}"));
    }
    if parent.to_str() != Some(&getppid().to_string()) {
        return Some("the demo has exited".into());
    }
    let error = process::Command::new(program).args(rest).exec();
    Some(format!("{}: {error}", program.display()))
}
