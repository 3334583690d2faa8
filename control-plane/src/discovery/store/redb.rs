//! The embedded store: one file, written by this process alone. Batches are flushed to the disk before they are acknowledged.

mod file;
mod original;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::{Store, Write, Writes};
use crate::discovery::metrics::Metrics;
use discovery::entries::Input;
use discovery::objects::Key;
use file::File;
use original::Original;

pub use file::{FORMAT, StoreError};

/// For so long writes are gathered, half of what a batch may take.
const GATHER: Duration = Duration::from_millis(10);
/// A store that cannot be written is tried again after so long.
const RETRY: Duration = Duration::from_secs(5);
/// Acknowledgements on their way to the registry.
const CAPACITY: usize = 1024;

/// Opens the file, or creates it where there is none, and starts the task that writes it. The task ends with the registry, after a last
/// batch; its handle says when.
///
/// # Errors
/// [`StoreError`]; then no byte of the file was changed.
pub async fn open(
    path: PathBuf,
    metrics: Arc<Metrics>,
) -> Result<(Store, tokio::task::JoinHandle<()>), StoreError> {
    let opened = blocking(move || {
        let opened = file::open(&path)?;
        Ok((opened, Original::of(&path)?))
    });
    let ((file, stored, is_new), original) = opened.await?;
    let (inputs_sender, inputs) = mpsc::channel(CAPACITY);
    let (degraded_sender, degraded) = watch::channel(None);
    let writes = Writes::default();
    let task = Task {
        original,
        file: Some(file),
        writes: writes.clone(),
        inputs: inputs_sender,
        degraded: degraded_sender,
        metrics,
    };
    let task = tokio::spawn(task.run());
    Ok((Store { stored, is_new, writes, inputs, degraded }, task))
}

struct Task {
    original: Original,
    /// Closed after an error: its state is not known until it is opened again.
    file: Option<File>,
    writes: Writes,
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

    /// Writes the batch, with what comes meanwhile, until it is written. Gives up only when nobody is there any more.
    async fn store(&mut self, mut batch: BTreeMap<Key, Write>) {
        loop {
            batch.append(&mut self.writes.take_now());
            let (original, file) = (self.original.clone(), self.file.take());
            let writes = batch.clone();
            let since = tokio::time::Instant::now();
            match blocking(move || commit(file, &original, &writes)).await {
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
        for (key, Write { write, .. }) in batch {
            if self.inputs.send(Input::Stored { key, write }).await.is_err() {
                return;
            }
        }
    }
}

/// Commits to the open file, or opens it again for that. No other file is written, and none is made.
fn commit(
    file: Option<File>,
    original: &Original,
    writes: &BTreeMap<Key, Write>,
) -> Result<File, StoreError> {
    original.is_in_place()?;
    let file = match file {
        Some(file) => file,
        None => file::reopen(original.path())?,
    };
    file.commit(writes)?;
    // It may have gone meanwhile, and the batch with it.
    original.is_in_place()?;
    Ok(file)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("the work does not panic")
}

#[cfg(test)]
mod tests;
