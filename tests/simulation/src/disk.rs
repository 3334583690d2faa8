//! The server's store: writes become durable later, together and in order; a crash loses those that
//! are not durable yet.

use std::collections::BTreeMap;

use discovery::entries::Record;
use discovery::objects::Key;

/// A write that is not durable yet.
#[derive(Debug, Clone)]
pub struct Write {
    pub key: Key,
    /// The number by which the state machine identifies the write.
    pub number: u64,
    /// `None`: delete the record.
    pub record: Option<Record>,
}

/// The stored records and the pending writes.
#[derive(Debug, Default)]
pub struct Disk {
    /// The durable records, which survive a crash.
    pub records: BTreeMap<Key, Record>,
    /// Writes that a crash loses.
    pending: Vec<Write>,
}

impl Disk {
    /// Adds a write and returns whether it is the only pending one.
    pub fn write(&mut self, write: Write) -> bool {
        self.pending.push(write);
        self.pending.len() == 1
    }

    /// Makes all pending writes durable and returns them.
    pub fn commit(&mut self) -> Vec<Write> {
        let written = std::mem::take(&mut self.pending);
        for write in &written {
            match &write.record {
                // Serializing and parsing drops the fields that serde skips.
                Some(record) => self.records.insert(write.key.clone(), record.clone()),
                None => self.records.remove(&write.key),
            };
        }
        written
    }

    /// Loses the pending writes, and with `empty` all records.
    pub fn crash(&mut self, empty: bool) {
        self.pending.clear();
        if empty {
            self.records.clear();
        }
    }
}
