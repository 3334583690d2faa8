//! Where the programs are that run containers: those that `./justw --containers` unpacked, or else the machine's own.

use std::path::PathBuf;

/// The root of unpacked packages that the environment names by `CONTAINER_TOOLS`; `None` where there is none. Its `usr` is laid over `/usr`
/// in the mount namespace of whoever runs them, and so nothing on the machine changes.
pub fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("CONTAINER_TOOLS")?);
    folder.join("usr").is_dir().then_some(folder)
}

/// A program among them, or on the PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let unpacked =
        folder().into_iter().flat_map(|folder| ["usr/sbin", "usr/bin"].map(|part| folder.join(part)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    unpacked
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}
