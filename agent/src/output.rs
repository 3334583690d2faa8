//! Where bytes go: a file that is there whole or not at all, something that is written through, or stdout.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes to `path`: a regular file, or none, is replaced (0600); into a link, a pipe or a device such as /dev/stdout the bytes are
/// written, and it stays what it is.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        return file.write_all(bytes);
    }
    replace(path, bytes)
}

/// Puts `bytes` at `path`, mode 0600: into a new file beside it, which is then renamed, so that nobody ever reads half of it.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.app-health-agent", std::process::id()));
    let beside = PathBuf::from(beside);
    // In a container every process has the same number: what one that was killed left behind is in the way.
    let _ = fs::remove_file(&beside);
    let written = write_new(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Writes to stdout.
pub fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
