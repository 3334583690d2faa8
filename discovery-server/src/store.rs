//! Interface between the registry and a store. Of the pending writes of an entry only the newest is
//! kept; the store confirms writes through a channel.

pub mod kubernetes;
pub mod redb;

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, mpsc, watch};

use discovery::entries::{Input, Record};
use discovery::objects::Key;

/// The newest state of one entry, to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub sequence: u64,
    /// `None` deletes the entry.
    pub record: Option<Box<Record>>,
    /// Session in which this write was decided.
    pub session: u64,
}

/// Pending writes, at most one per entry, however slow the store is.
#[derive(Clone, Debug, Default)]
pub struct PendingWrites(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    writes: Mutex<BTreeMap<Key, Write>>,
    notify: Notify,
}

impl PendingWrites {
    /// Queues `write` and replaces a pending write of the same entry.
    pub fn push(&self, key: Key, write: Write) {
        self.0.writes.lock().expect("nothing panics while it holds this lock").insert(key, write);
        self.0.notify.notify_one();
    }

    /// Waits until writes are pending and returns all of them.
    pub async fn take(&self) -> BTreeMap<Key, Write> {
        loop {
            let notified = self.0.notify.notified();
            let writes = self.take_now();
            if !writes.is_empty() {
                return writes;
            }
            notified.await;
        }
    }

    /// Returns all pending writes without waiting.
    pub fn take_now(&self) -> BTreeMap<Key, Write> {
        mem::take(&mut *self.0.writes.lock().expect("nothing panics while it holds this lock"))
    }
}

/// An open store, as the registry uses it.
#[derive(Debug)]
pub struct Store {
    /// Records that were in the store when it was opened.
    pub stored: Vec<(Key, Record)>,
    /// True if the store did not exist before.
    pub is_new: bool,
    pub writes: PendingWrites,
    /// Carries [`Input::Stored`], and for a shared store also [`Input::Observed`] and similar
    /// inputs.
    pub inputs: mpsc::Receiver<Input>,
    /// Why writes currently fail; `None` if they succeed.
    pub degraded: watch::Receiver<Option<String>>,
    /// True while this process cannot show the others that share the store that it is alive.
    pub isolated: watch::Receiver<bool>,
}

#[cfg(test)]
mod tests;
