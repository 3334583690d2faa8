//! The hidden command `launch`, through which `run` starts Envoy: it asks the kernel for a signal when its parent dies, and becomes
//! Envoy. The number stays the same. Without it an agent that is killed would leave an Envoy behind, on the ports of the next one;
//! Envoy does not ask for that itself, and to ask between fork and exec would take unsafe code.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::exit::Failure;

/// The exit code if there is nothing to become; Envoy has none like it.
pub const NOT_STARTED: u8 = 71;

/// Returns only if it cannot become `command`, or if there is no `parent` any more.
pub fn run(parent: i32, command: &[OsString]) -> Result<(), Failure> {
    let failed = |error: nix::Error| Failure::Machine(format!("launch: {error}"));
    set_pdeathsig(Signal::SIGTERM).map_err(failed)?;
    if getppid().as_raw() != parent {
        return Err(Failure::Machine("launch: the agent has ended".to_owned()));
    }
    let Some((file, args)) = command.split_first() else { return Ok(()) };
    let error = Command::new(file).args(args).exec();
    Err(Failure::Machine(format!("cannot start {}: {error}", file.to_string_lossy())))
}
