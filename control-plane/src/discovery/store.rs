//! Where entries are kept: what is to be written, newest wins, and what comes back.

pub mod kubernetes;
pub mod redb;

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, mpsc, watch};

use discovery::entries::{Input, Record};
use discovery::objects::Key;

/// One entry's newest state.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Its number.
    pub write: u64,
    /// `None`: delete.
    pub record: Option<Box<Record>>,
    /// The session that this was decided on.
    pub session: u64,
}

/// What waits to be written: one state per entry, however long the store takes.
#[derive(Clone, Debug, Default)]
pub struct Writes(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    writes: Mutex<BTreeMap<Key, Write>>,
    notify: Notify,
}

impl Writes {
    /// Has `write` stored in place of what waits for the same entry.
    pub fn push(&self, key: Key, write: Write) {
        self.0.writes.lock().expect("nothing panics while it holds this lock").insert(key, write);
        self.0.notify.notify_one();
    }

    /// Everything that waits; waits itself until there is something.
    pub async fn take(&self) -> BTreeMap<Key, Write> {
        loop {
            let notified = self.0.notify.notified();
            let writes =
                mem::take(&mut *self.0.writes.lock().expect("nothing panics while it holds this lock"));
            if !writes.is_empty() {
                return writes;
            }
            notified.await;
        }
    }

    /// Everything that waits.
    pub fn take_now(&self) -> BTreeMap<Key, Write> {
        mem::take(&mut *self.0.writes.lock().expect("nothing panics while it holds this lock"))
    }
}

/// An open store as the registry sees it.
#[derive(Debug)]
pub struct Store {
    /// What was in it.
    pub stored: Vec<(Key, Record)>,
    /// Whether there was nothing, not even an empty store.
    pub is_new: bool,
    /// Where writes go.
    pub writes: Writes,
    /// [`Input::Stored`], and for a store that others write too [`Input::Observed`] and the like.
    pub inputs: mpsc::Receiver<Input>,
    /// Why nothing can be stored at the moment.
    pub degraded: watch::Receiver<Option<String>>,
}

#[cfg(test)]
mod tests;
