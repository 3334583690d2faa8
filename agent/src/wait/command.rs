//! The command behind `wait --`: found before the wait, become after it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::exit::Failure;
use crate::program::{self, Missing};
use crate::stderr;

/// Is there such a command?
pub(super) fn look_up(command: &OsStr, path: &OsStr) -> Result<(), Failure> {
    let name = || command.to_string_lossy().into_owned();
    program::find(command, path).map(|_| ()).map_err(|missing| match missing {
        Missing::NotFound => Failure::NotFound(name()),
        Missing::NotExecutable => Failure::NotExecutable(name()),
    })
}

/// Becomes the command: the same process, the same environment. Returns if there is none, or if it cannot be.
pub(super) fn become_it(command: &[OsString]) -> Result<(), Failure> {
    let Some((file, args)) = command.split_first() else { return Ok(()) };
    // What is not written by then is never written.
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
