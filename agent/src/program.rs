//! Looks up programs in the PATH.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    NotFound,
    /// A file exists, but it is not executable.
    NotExecutable,
}

/// Returns the file to execute. A name that contains a slash is a path; any other name is searched
/// for in the directories of `path`, as execvp does.
pub fn find(program: &OsStr, path: &OsStr) -> Result<PathBuf, Missing> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![PathBuf::from(program)]
    } else {
        let folders = path.as_bytes().split(|byte| *byte == b':');
        folders.map(|folder| Path::new(OsStr::from_bytes(folder)).join(program)).collect()
    };
    let there: Vec<_> =
        candidates.into_iter().filter_map(|file| Some((std::fs::metadata(&file).ok()?, file))).collect();
    if there.is_empty() {
        return Err(Missing::NotFound);
    }
    let executable =
        there.into_iter().find(|(found, _)| found.is_file() && found.permissions().mode() & 0o111 != 0);
    executable.map(|(_, file)| file).ok_or(Missing::NotExecutable)
}
