//! Whether the store still has its name. Not here: what is in it (`file`).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{StoreError, io_error};

/// The file that was opened at the start. It is held, so that no other file can get its inode.
#[derive(Clone, Debug)]
pub(super) struct Original {
    path: PathBuf,
    held: Arc<fs::File>,
}

impl Original {
    /// The file that `path` names now.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let held = fs::File::open(path).map_err(|error| io_error(path, &error))?;
        Ok(Self { path: path.to_owned(), held: Arc::new(held) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the next start will find it: what is written to a file without its name is lost.
    pub(super) fn is_in_place(&self) -> Result<(), StoreError> {
        let displaced = |reason| Err(StoreError::Displaced(self.path.display().to_string(), reason));
        let inode = |found: &fs::Metadata| (found.dev(), found.ino());
        let held = self.held.metadata().map_err(|error| io_error(&self.path, &error))?;
        match fs::metadata(&self.path) {
            Ok(found) if inode(&found) == inode(&held) => Ok(()),
            Ok(_) => displaced("another file is in its place"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => displaced("the file is gone"),
            Err(error) => Err(io_error(&self.path, &error)),
        }
    }
}
