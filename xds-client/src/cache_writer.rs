//! Writes the file of the last good configuration on another thread, so that a slow disk delays
//! nothing else. The crate `xds-proxy` decides when, and starts one write at a time.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use xds_proxy::{LastGood, Write};

use super::cache_file::CacheFile;

pub(super) struct CacheWriter {
    file: CacheFile,
    /// Identity of the node, which the file belongs to.
    identity: Arc<str>,
    /// The write in progress.
    running: Option<JoinHandle<(LastGood, io::Result<()>)>>,
}

impl CacheWriter {
    pub(super) fn new(file: CacheFile, identity: &str) -> Self {
        Self { file, identity: identity.into(), running: None }
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Starts a write; [`CacheWriter::finished`] returns its result.
    pub(super) fn start(&mut self, write: Write, good: LastGood, age: Duration) {
        let (file, identity) = (self.file.clone(), self.identity.clone());
        self.running = Some(spawn_blocking(move || match write {
            Write::Content => {
                let packed = good.packed();
                drop(good);
                let result = file.write(&packed, &identity, age);
                (packed, result)
            }
            Write::Age => (LastGood::default(), file.set_age(age)),
        }));
    }

    /// Waits for the end of the write; never returns if there is none. Returns the configuration, all of it
    /// compressed, and whether it was written. This method is cancel safe.
    pub(super) async fn finished(&mut self) -> (LastGood, Result<(), String>) {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let result = running.await;
        self.running = None;
        match result {
            Ok((packed, written)) => (packed, written.map_err(|error| error.to_string())),
            Err(error) => (LastGood::default(), Err(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
