//! The command after `wait --`, which is looked up before the wait and executed after it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::program::{self, Missing};
use agent_output::exit::Failure;
use agent_output::stderr;

pub(super) fn look_up(command: &OsStr, path: &OsStr) -> Result<(), Failure> {
    let name = || command.to_string_lossy().into_owned();
    program::find(command, path).map(|_| ()).map_err(|missing| match missing {
        Missing::NotFound => Failure::NotFound(name()),
        Missing::NotExecutable => Failure::NotExecutable(name()),
    })
}

/// Executes the command in this process, with the same environment. Returns if there is no command
/// or if it cannot be executed.
pub(super) fn exec(command: &[OsString]) -> Result<(), Failure> {
    let Some((file, args)) = command.split_first() else { return Ok(()) };
    // Lines that are still queued would be lost.
    stderr::flush();
    let error = Command::new(file).args(args).exec();
    let file = file.to_string_lossy().into_owned();
    Err(match error.kind() {
        io::ErrorKind::NotFound => Failure::NotFound(file),
        _ => Failure::NotExecutable(format!("{file}: {error}")),
    })
}

#[cfg(test)]
mod tests;
