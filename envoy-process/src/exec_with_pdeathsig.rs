//! The hidden command `launch`, through which `run` starts Envoy. It asks the kernel to send it a
//! signal when its parent exits (`PR_SET_PDEATHSIG`) and then executes Envoy in the same process.
//! Without it, an agent that is killed would leave an Envoy that occupies the ports. Envoy does not
//! set this option itself, and setting it between fork and exec would need unsafe code.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::leftover;
use agent_output::exit::{Failure, stderr_line};
use agent_output::stderr;

/// Exit code if Envoy could not be executed; Envoy itself does not use this code.
pub const NOT_STARTED: u8 = 71;

/// Returns only if `command` cannot be executed or if `parent` has exited. Envoy also starts if the file
/// `record` cannot be written.
pub fn run(parent: i32, record: Option<&Path>, command: &[OsString]) -> Result<(), Failure> {
    let failed = |error: nix::Error| Failure::Os(format!("launch: {error}"));
    set_pdeathsig(Signal::SIGTERM).map_err(failed)?;
    if getppid().as_raw() != parent {
        return Err(Failure::Os("launch: the agent has exited".to_owned()));
    }
    if let Some(record) = record
        && let Err(error) = leftover::record(record, parent, command)
    {
        stderr_line(&format!(
            "launch: cannot write {}: {error}; if the agent is killed, the next one cannot end this Envoy",
            record.display()
        ));
        stderr::flush();
    }
    let Some((file, args)) = command.split_first() else { return Ok(()) };
    let error = Command::new(file).args(args).exec();
    Err(Failure::Os(format!("cannot start {}: {error}", file.to_string_lossy())))
}
