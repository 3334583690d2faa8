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
/// unpacked programs, their libraries and their Python modules without a mount.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    let Some(root) = folder() else { return command };
    let entries = std::fs::read_dir(root.join("usr/lib")).into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let folder = |name: &String| root.join("usr/lib").join(name);
    if let Some(libraries) = names.iter().find(|name| name.ends_with("-linux-gnu")).map(folder) {
        command.env("XTABLES_LIBDIR", libraries.join("xtables")).env("LD_LIBRARY_PATH", libraries);
    }
    // Debian's modules are in `python3/dist-packages`, its parts of the standard library beside it.
    let standard = names.iter().filter(|name| name.starts_with("python3.")).map(folder);
    let modules =
        std::env::join_paths([folder(&"python3/dist-packages".to_owned())].into_iter().chain(standard));
    command.env("PYTHONPATH", modules.expect("paths without colons"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = ["usr/sbin", "usr/bin"].map(|part| root.join(part));
    let path = std::env::join_paths(first.into_iter().chain(std::env::split_paths(&path)));
    command.env("PATH", path.expect("paths without colons"));
    command
}
