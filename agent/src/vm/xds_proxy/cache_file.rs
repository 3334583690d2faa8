//! The file with the last good configuration. Its modification time says when a control plane last
//! confirmed it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use nix::unistd::geteuid;
use tracing::{info, warn};
use xds_proxy::LastGood;

use crate::output;

/// Maximum size of the file in bytes.
const SIZE_LIMIT: u64 = 80 << 20;

pub(super) struct CacheFile {
    path: PathBuf,
    /// True if the last attempt to write failed.
    is_failing: bool,
    /// True if the file contains the newest configuration.
    is_current: bool,
}

impl CacheFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, is_failing: false, is_current: false }
    }

    /// Reads the file of this node. Returns the configuration and its age; `None`, after a log line,
    /// if there is none that may be used.
    pub(super) fn load(&mut self, identity: &str, max_age: Duration) -> Option<(LastGood, Duration)> {
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
                self.is_current = true;
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

    /// Replaces the file. A failure is logged once until it is over. Returns true if the file is
    /// written.
    pub(super) fn store(&mut self, content: &[u8]) -> bool {
        let stored = output::replace(&self.path, content);
        self.is_current = stored.is_ok();
        self.log(stored)
    }

    /// Marks the file as confirmed by a control plane now. Returns false if it must be stored again,
    /// because it does not exist, or contains an older configuration.
    pub(super) fn confirm(&mut self) -> bool {
        let mark = || File::options().write(true).open(&self.path)?.set_modified(now());
        self.is_current && mark().is_ok()
    }

    fn log(&mut self, written: io::Result<()>) -> bool {
        let path = self.path.display();
        let was_failing = std::mem::replace(&mut self.is_failing, written.is_err());
        match &written {
            Err(error) if !was_failing => {
                warn!(%path, %error, "xDS configuration not stored; an Envoy that starts without a control plane gets an older one or none");
            }
            Ok(()) if was_failing => info!(%path, "xDS configuration stored again"),
            _ => {}
        }
        written.is_ok()
    }
}

#[expect(clippy::disallowed_methods, reason = "the age must survive a restart of the machine")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
