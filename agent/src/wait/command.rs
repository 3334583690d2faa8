//! The command behind `wait --`: found before the wait, become after it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exit::Failure;

/// Is there such a command? A name with a slash is a file; another one is looked for in the folders of `path`, as execvp does.
pub(super) fn look_up(command: &OsStr, path: &OsStr) -> Result<(), Failure> {
    let candidates: Vec<PathBuf> = if command.as_bytes().contains(&b'/') {
        vec![PathBuf::from(command)]
    } else {
        path.as_bytes()
            .split(|byte| *byte == b':')
            .map(|folder| Path::new(OsStr::from_bytes(folder)).join(command))
            .collect()
    };
    let found: Vec<_> = candidates.iter().filter_map(|file| std::fs::metadata(file).ok()).collect();
    if found.is_empty() {
        return Err(Failure::NotFound(command.to_string_lossy().into_owned()));
    }
    if found.iter().any(|file| file.is_file() && file.permissions().mode() & 0o111 != 0) {
        return Ok(());
    }
    Err(Failure::NotExecutable(command.to_string_lossy().into_owned()))
}

/// Becomes the command: the same process, the same environment. Returns if there is none, or if it cannot be.
pub(super) fn become_it(command: &[OsString]) -> Result<(), Failure> {
    let Some((file, args)) = command.split_first() else { return Ok(()) };
    let error = Command::new(file).args(args).exec();
    let file = file.to_string_lossy().into_owned();
    Err(match error.kind() {
        io::ErrorKind::NotFound => Failure::NotFound(file),
        _ => Failure::NotExecutable(format!("{file}: {error}")),
    })
}

#[cfg(test)]
mod tests;
