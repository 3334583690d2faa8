//! The state directory and the files in it: for their owner alone, and put in place whole or not at all.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The filter that this binary carries.
pub const FILTER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/app_health_filter.wasm"));
/// Its file's name, `app_health_filter-<12 digits of its sha256>.wasm`: another filter is another file, so an Envoy that runs keeps its own.
pub const FILTER_FILE_NAME: &str = env!("FILTER_FILE_NAME");

/// Why a file is not where it shall be.
#[derive(Debug, Error)]
pub enum StateDirError {
    /// The directory, or a file in it, cannot be written.
    #[error("{path}: {source}; another place is --state-dir DIR, and --inline-filter needs none")]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others could put a filter of theirs there.
    #[error("{0}: others may write there (mode {1:o}); it must be for its owner alone")]
    Open(PathBuf, u32),
}

/// Makes `state_dir` (0700) and writes the filter of this binary into it, unless the same bytes are there already.
pub fn write_filter(state_dir: &Path) -> Result<(), StateDirError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StateDirError::Write { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(failed(state_dir))?;
    let mode = fs::metadata(state_dir).map_err(failed(state_dir))?.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(StateDirError::Open(state_dir.to_owned(), mode));
    }
    let file = state_dir.join(FILTER_FILE_NAME);
    if fs::read(&file).is_ok_and(|bytes| bytes == FILTER) {
        return Ok(());
    }
    write(&file, FILTER).map_err(failed(&file))
}

/// Puts `bytes` at `path`, mode 0600: into a new file beside it, which is then renamed, so that nobody ever reads half of it.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write_new(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(PermissionsExt::from_mode(0o600))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
