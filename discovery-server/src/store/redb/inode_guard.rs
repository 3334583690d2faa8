//! Checks that the path of the store still names the file that was opened; `file` handles its
//! content.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{StoreError, io_error};

/// The file that was opened at startup. It is kept open so that no other file can get its inode
/// number.
#[derive(Clone, Debug)]
pub(super) struct InodeGuard {
    path: PathBuf,
    held: Arc<fs::File>,
}

impl InodeGuard {
    /// Opens the file that is at `path` now.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let held = fs::File::open(path).map_err(|error| io_error(path, &error))?;
        Ok(Self { path: path.to_owned(), held: Arc::new(held) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error if the path no longer names this file: data written to it would be lost at
    /// the next start.
    pub(super) fn check_path(&self) -> Result<(), StoreError> {
        let replaced = |reason| Err(StoreError::Replaced(self.path.display().to_string(), reason));
        let inode = |found: &fs::Metadata| (found.dev(), found.ino());
        let held = self.held.metadata().map_err(|error| io_error(&self.path, &error))?;
        match fs::metadata(&self.path) {
            Ok(found) if inode(&found) == inode(&held) => Ok(()),
            Ok(_) => replaced("the path names another file"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => replaced("the file no longer exists"),
            Err(error) => Err(io_error(&self.path, &error)),
        }
    }
}
