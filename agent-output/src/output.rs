//! Writes bytes to a file, atomically if it is a regular one, or to stdout.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes to `path`. A regular or missing file is replaced atomically with mode 0600. A link, a
/// pipe or a device such as /dev/stdout is opened and written to.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        return file.write_all(bytes);
    }
    replace(path, bytes)
}

/// Writes `bytes` to `path` with mode 0600. The bytes go to a new file in the same directory, which
/// is then renamed, so that no reader sees a partial file.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with_mode(path, bytes, 0o600)
}

/// Like [`replace`], with another mode, from which the umask of the process takes away.
pub fn replace_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.app-health-agent", std::process::id()));
    let beside = PathBuf::from(beside);
    // In containers process ids repeat, so a killed process may have left a file with this name.
    let _ = fs::remove_file(&beside);
    let written = write_new(&beside, bytes, mode).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

pub fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
