//! The state directory and the filter in it: for their owner alone, since whoever may write there chooses the code that Envoy runs.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use thiserror::Error;

use crate::output;

/// The filter that this binary carries.
pub const FILTER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/app_health_filter.wasm"));
/// Its file's name, `app_health_filter-<12 digits of its sha256>.wasm`: another filter is another file, so an Envoy that runs keeps its own.
pub const FILTER_FILE_NAME: &str = env!("FILTER_FILE_NAME");
/// The bootstrap's.
const BOOTSTRAP_FILE_NAME: &str = "envoy.json";

/// Why the state directory is not as it shall be.
#[derive(Debug, Error)]
pub enum StateDirError {
    /// The directory, or a file in it, cannot be written.
    #[error(
        "{path}: {source}; another place is --state-dir DIR, and --inline-filter with --admin elsewhere needs none"
    )]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others could put a filter of theirs there.
    #[error(
        "{0}: others may write there (mode {1:o}); it must be for its owner alone: chmod go-w, or --state-dir with a folder below it, \
         which is made so (a volume such as Kubernetes' emptyDir is open to all)"
    )]
    Open(PathBuf, u32),
    /// Somebody else could.
    #[error(
        "{path}: belongs to user {owner}, and this is user {user}; it must be this user's or root's: chown, or another place with \
         --state-dir DIR"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// This process' effective user.
        user: u32,
    },
}

/// Makes `state_dir` (0700) unless it is there, and refuses one in which others may write.
pub fn make(state_dir: &Path) -> Result<(), StateDirError> {
    DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(failed(state_dir))?;
    let found = fs::metadata(state_dir).map_err(failed(state_dir))?;
    let (owner, user, mode) = (found.uid(), geteuid().as_raw(), found.mode() & 0o7777);
    if !trusted_owner(owner, user) {
        return Err(StateDirError::Foreign { path: state_dir.to_owned(), owner, user });
    }
    if open_to_others(mode) {
        return Err(StateDirError::Open(state_dir.to_owned(), mode));
    }
    Ok(())
}

/// Makes `state_dir` and writes the filter of this binary into it, unless the same bytes are there already, in a file that nobody else
/// can change.
pub fn write_filter(state_dir: &Path) -> Result<(), StateDirError> {
    make(state_dir)?;
    let file = state_dir.join(FILTER_FILE_NAME);
    let ours = |found: Metadata| {
        found.is_file() && trusted_owner(found.uid(), geteuid().as_raw()) && !open_to_others(found.mode())
    };
    if fs::symlink_metadata(&file).is_ok_and(ours) && fs::read(&file).is_ok_and(|bytes| bytes == FILTER) {
        return Ok(());
    }
    output::replace(&file, FILTER).map_err(failed(&file))
}

/// Writes the bootstrap (0600), with a state directory that is there; where it is then.
pub fn write_bootstrap(state_dir: &Path, bootstrap: &str) -> Result<PathBuf, StateDirError> {
    make(state_dir)?;
    let file = state_dir.join(BOOTSTRAP_FILE_NAME);
    output::replace(&file, bootstrap.as_bytes()).map_err(failed(&file))?;
    Ok(file)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> StateDirError {
    let path = path.to_owned();
    move |source| StateDirError::Write { path, source }
}

/// Root may write everywhere anyway.
fn trusted_owner(owner: u32, user: u32) -> bool {
    owner == user || owner == 0
}

fn open_to_others(mode: u32) -> bool {
    mode & 0o022 != 0
}

#[cfg(test)]
mod tests;
