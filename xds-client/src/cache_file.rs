//! The file with the last good configuration. Its modification time says when a control plane last
//! confirmed it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::unistd::geteuid;
use tracing::{info, warn};
use xds_proxy::LastGood;

/// Maximum size of the file in bytes.
const SIZE_LIMIT: u64 = 80 << 20;

#[derive(Debug, Clone)]
pub(super) struct CacheFile {
    path: PathBuf,
    /// The new file, until it is complete.
    partial: PathBuf,
}

impl CacheFile {
    /// Returns the file in this directory, which need not exist.
    pub(super) fn new(directory: &Path) -> Self {
        Self { path: directory.join("xds-cache"), partial: directory.join("xds-cache.partial") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file of this node. Returns the configuration and its age; `None`, after a log line,
    /// if there is none that may be used.
    pub(super) fn load(&self, identity: &str, max_age: Duration) -> Option<(LastGood, Duration)> {
        let path = self.path.display();
        let (file, age) = match self.read() {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                warn!(%path, %error, "stored xDS configuration ignored");
                return None;
            }
        };
        if age > max_age {
            warn!(%path, age_seconds = age.as_secs(), "stored xDS configuration ignored: older than --xds-cache-max-age");
            return None;
        }
        match LastGood::decode(file, identity) {
            Ok(good) => {
                info!(%path, age_seconds = age.as_secs(), types = good.0.len(), "stored xDS configuration loaded");
                Some((good, age))
            }
            Err(error) => {
                warn!(%path, %error, "stored xDS configuration ignored");
                None
            }
        }
    }

    fn read(&self) -> io::Result<(Vec<u8>, Duration)> {
        let found = fs::symlink_metadata(&self.path)?;
        if !found.is_file() || ![0, geteuid().as_raw()].contains(&found.uid()) || found.mode() & 0o022 != 0 {
            return Err(io::Error::other("not a regular file that only this user can write"));
        }
        if found.len() > SIZE_LIMIT {
            return Err(io::Error::other("too large"));
        }
        // A time in the future is that of a clock that was wrong, then or now.
        let age = now().duration_since(found.modified()?).unwrap_or_default();
        Ok((fs::read(&self.path)?, age))
    }

    /// Replaces the file by one with mode 0600. After a crash of the machine, it is the old file or the
    /// new one. `age` is the time since a control plane confirmed the content.
    ///
    /// # Errors
    /// If the new file cannot be written. The old one stays then.
    pub(super) fn write(&self, good: &LastGood, identity: &str, age: Duration) -> io::Result<()> {
        // An agent that was killed has left it.
        let _ = fs::remove_file(&self.partial);
        let written = self
            .write_partial(good, identity, age)
            .and_then(|()| fs::rename(&self.partial, &self.path))
            .and_then(|()| self.path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all()));
        if written.is_err() {
            let _ = fs::remove_file(&self.partial);
        }
        written
    }

    fn write_partial(&self, good: &LastGood, identity: &str, age: Duration) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.partial)?;
        file.write_all(&good.encode(identity))?;
        file.set_modified(time_of(age))?;
        file.sync_all()
    }

    /// Sets the age of the file.
    pub(super) fn set_age(&self, age: Duration) -> io::Result<()> {
        File::options().write(true).open(&self.path)?.set_modified(time_of(age))
    }
}

fn time_of(age: Duration) -> SystemTime {
    now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[expect(clippy::disallowed_methods, reason = "the age must survive a restart of the machine")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
