//! The embedded store: one database file, written only by this process. Batches are flushed to disk
//! before they are acknowledged.

mod file;
mod inode_guard;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::{PendingWrites, Store, Write};
use crate::metrics::Metrics;
use discovery::entries::Input;
use discovery::objects::Key;
use file::File;
use inode_guard::InodeGuard;

pub use file::{FORMAT, StoreError};

/// How long writes are collected into a batch: half of the time that a batch may take.
const GATHER: Duration = Duration::from_millis(10);
/// Delay before a failed write is retried.
const RETRY: Duration = Duration::from_secs(5);
/// Capacity of the channel of acknowledgements to the registry.
const CAPACITY: usize = 1024;

/// Opens the file, or creates it if it does not exist, and starts the task that writes it. The task
/// ends with the registry after a last batch; await its handle to know when.
///
/// # Errors
/// Returns a [`StoreError`]; the file is unchanged in this case.
pub async fn open(
    path: PathBuf,
    metrics: Arc<Metrics>,
) -> Result<(Store, tokio::task::JoinHandle<()>), StoreError> {
    let opened = blocking(move || {
        let opened = file::open(&path)?;
        Ok((opened, InodeGuard::open(&path)?))
    });
    let ((file, stored, is_new), inode_guard) = opened.await?;
    let (inputs_sender, inputs) = mpsc::channel(CAPACITY);
    let (degraded_sender, degraded) = watch::channel(None);
    let writes = PendingWrites::default();
    let task = Task {
        inode_guard,
        file: Some(file),
        writes: writes.clone(),
        inputs: inputs_sender,
        degraded: degraded_sender,
        metrics,
    };
    let task = tokio::spawn(task.run());
    let isolated = watch::channel(false).1;
    Ok((Store { stored, is_new, writes, inputs, degraded, isolated }, task))
}

struct Task {
    inode_guard: InodeGuard,
    /// Closed after an error: its state is unknown until it is reopened.
    file: Option<File>,
    writes: PendingWrites,
    inputs: mpsc::Sender<Input>,
    degraded: watch::Sender<Option<String>>,
    metrics: Arc<Metrics>,
}

impl Task {
    async fn run(mut self) {
        loop {
            let batch = tokio::select! {
                batch = self.writes.take() => batch,
                () = self.inputs.closed() => self.writes.take_now(),
            };
            let is_over = self.inputs.is_closed();
            if !is_over {
                sleep(GATHER).await;
            }
            if !batch.is_empty() {
                self.store(batch).await;
            }
            if is_over {
                return;
            }
        }
    }

    /// Writes the batch and everything that is queued meanwhile, and retries until it succeeds or
    /// the registry has ended.
    async fn store(&mut self, mut batch: BTreeMap<Key, Write>) {
        loop {
            batch.append(&mut self.writes.take_now());
            let (inode_guard, file) = (self.inode_guard.clone(), self.file.take());
            let writes = batch.clone();
            let since = tokio::time::Instant::now();
            match blocking(move || commit(file, &inode_guard, &writes)).await {
                Ok(file) => {
                    self.file = Some(file);
                    self.metrics.committed(since.elapsed().as_secs_f64(), true);
                    self.degraded.send_if_modified(|degraded| degraded.take().is_some());
                    return self.acknowledge(batch).await;
                }
                Err(error) => {
                    self.metrics.committed(since.elapsed().as_secs_f64(), false);
                    let text = error.to_string();
                    self.degraded.send_if_modified(|degraded| degraded.replace(text.clone()) != Some(text));
                    tokio::select! {
                        () = sleep(RETRY) => {}
                        () = self.inputs.closed() => return,
                    }
                }
            }
        }
    }

    async fn acknowledge(&self, batch: BTreeMap<Key, Write>) {
        for (key, Write { sequence, .. }) in batch {
            if self.inputs.send(Input::Stored { key, write: sequence }).await.is_err() {
                return;
            }
        }
    }
}

/// Commits to the open file, or reopens it first. Never writes or creates another file.
fn commit(
    file: Option<File>,
    inode_guard: &InodeGuard,
    writes: &BTreeMap<Key, Write>,
) -> Result<File, StoreError> {
    inode_guard.check_path()?;
    let file = match file {
        Some(file) => file,
        None => file::reopen(inode_guard.path())?,
    };
    file.commit(writes)?;
    // The file may have been replaced during the commit, and the batch lost with it.
    inode_guard.check_path()?;
    Ok(file)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("the work does not panic")
}

#[cfg(test)]
mod tests;
