//! The state directory and the filter in it. Only their owner may write there, because the contents
//! determine which code Envoy runs.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use miniz_oxide::inflate;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;
use thiserror::Error;

use agent_output::output;

/// A form of the filter that this binary contains.
#[derive(Debug, PartialEq, Eq)]
pub struct EmbeddedFilter {
    /// File name with 12 digits of the sha256 of the bytes. Another filter has another name, so a
    /// running Envoy keeps its file.
    pub file_name: &'static str,
    /// DEFLATE without a header.
    compressed: &'static [u8],
}

impl EmbeddedFilter {
    /// Returns the file that Envoy loads.
    pub fn bytes(&self) -> Vec<u8> {
        inflate::decompress_to_vec(self.compressed).expect("the build compresses valid bytes")
    }
}

pub static WASM: EmbeddedFilter = EmbeddedFilter {
    file_name: env!("WASM_FILE_NAME"),
    compressed: include_bytes!(concat!(env!("OUT_DIR"), "/app_health_filter.wasm.deflate")),
};
/// The dynamic module.
pub static MODULE: EmbeddedFilter = EmbeddedFilter {
    file_name: env!("MODULE_FILE_NAME"),
    compressed: include_bytes!(concat!(env!("OUT_DIR"), "/app_health_filter.so.deflate")),
};
const BOOTSTRAP_FILE_NAME: &str = "envoy.json";

#[derive(Debug, Error)]
pub enum StateDirError {
    #[error("{path}: {source}; choose another directory with --state-dir DIR")]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{0}: other users can write to this directory (mode {1:o}), but only its owner may: run chmod go-w, or set --state-dir to a \
         subdirectory, which is created with mode 0700 (volumes such as Kubernetes' emptyDir are writable for all users)"
    )]
    WritableByOthers(PathBuf, u32),
    #[error(
        "{path}: owned by user {owner}, but this process runs as user {user}, and the owner must be this user or root: run chown, or \
         choose another directory with --state-dir DIR"
    )]
    WrongOwner { path: PathBuf, owner: u32, user: u32 },
}

/// Creates `state_dir` with mode 0700 unless it exists, and rejects a directory that other users
/// can write to.
pub fn create(state_dir: &Path) -> Result<(), StateDirError> {
    DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(failed(state_dir))?;
    let found = fs::metadata(state_dir).map_err(failed(state_dir))?;
    let (owner, user, mode) = (found.uid(), geteuid().as_raw(), found.mode() & 0o7777);
    if !trusted_owner(owner, user) {
        return Err(StateDirError::WrongOwner { path: state_dir.to_owned(), owner, user });
    }
    if open_to_others(mode) {
        return Err(StateDirError::WritableByOthers(state_dir.to_owned(), mode));
    }
    Ok(())
}

/// Creates `state_dir` and writes the filter into it.
pub fn write_filter(state_dir: &Path, filter: &EmbeddedFilter) -> Result<(), StateDirError> {
    create(state_dir)?;
    let file = state_dir.join(filter.file_name);
    write_unless_equal(&file, &filter.bytes()).map_err(failed(&file))
}

/// Creates `state_dir`, writes the bootstrap into it with mode 0600 and returns its path.
pub fn write_bootstrap(state_dir: &Path, bootstrap: &str) -> Result<PathBuf, StateDirError> {
    create(state_dir)?;
    let file = state_dir.join(BOOTSTRAP_FILE_NAME);
    write_unless_equal(&file, bootstrap.as_bytes()).map_err(failed(&file))?;
    Ok(file)
}

/// Writes a file with mode 0600, unless it already has these bytes and no other user can change or read it: then
/// a restart needs no room on a disk that has become full.
///
/// # Errors
/// If the file cannot be written.
pub fn write_unless_equal(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_ours = |found: Metadata| {
        found.is_file() && trusted_owner(found.uid(), geteuid().as_raw()) && found.mode() & 0o777 == 0o600
    };
    let is_equal = || fs::read(file).is_ok_and(|found| found == bytes);
    if fs::symlink_metadata(file).is_ok_and(is_ours) && is_equal() {
        return Ok(());
    }
    output::replace(file, bytes)
}

/// Returns true if programs in `state_dir`, which need not exist yet, cannot be mapped for execution.
pub fn is_noexec(state_dir: &Path) -> bool {
    let existing = state_dir.ancestors().find_map(|path| statvfs(path).ok());
    existing.is_some_and(|found| found.flags().contains(FsFlags::ST_NOEXEC))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> StateDirError {
    let path = path.to_owned();
    move |source| StateDirError::Write { path, source }
}

/// Accepts root too, because root can write everywhere.
fn trusted_owner(owner: u32, user: u32) -> bool {
    owner == user || owner == 0
}

fn open_to_others(mode: u32) -> bool {
    mode & 0o022 != 0
}

#[cfg(test)]
mod tests;
