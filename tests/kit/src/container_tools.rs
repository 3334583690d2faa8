//! Finds the programs that run containers: those that `./justw --containers` unpacked, or those of
//! this machine.

use std::path::PathBuf;
use std::process::Command;

/// Returns the root of the unpacked packages, named by the environment variable `CONTAINER_TOOLS`.
/// Its `usr` is mounted over `/usr` in the mount namespace of the process that uses it, so that
/// nothing changes on the machine.
pub fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("CONTAINER_TOOLS")?);
    folder.join("usr").is_dir().then_some(folder)
}

/// Returns the path of a program in the unpacked packages or on the PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let unpacked =
        folder().into_iter().flat_map(|folder| ["usr/sbin", "usr/bin"].map(|part| folder.join(part)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    unpacked
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Returns a command for a program such as `iptables`, or a script that calls it, which finds the
/// unpacked programs and their libraries without a mount.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    let Some(root) = folder() else { return command };
    let libraries = std::fs::read_dir(root.join("usr/lib")).into_iter().flatten().flatten();
    let libraries =
        libraries.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    if let Some(libraries) = libraries {
        command.env("XTABLES_LIBDIR", libraries.join("xtables")).env("LD_LIBRARY_PATH", libraries);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = ["usr/sbin", "usr/bin"].map(|part| root.join(part));
    let path = std::env::join_paths(first.into_iter().chain(std::env::split_paths(&path)));
    command.env("PATH", path.expect("paths without colons"));
    command
}
