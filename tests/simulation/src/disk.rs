//! PURE. The server's store: writes become durable later, together and in their order; what is not durable is lost with the process.

use std::collections::BTreeMap;

use discovery::entries::Record;
use discovery::objects::Key;

/// A write that is not durable yet.
#[derive(Debug, Clone)]
pub struct Write {
    /// The entry.
    pub key: Key,
    /// Of the brain.
    pub number: u64,
    /// Absent: delete.
    pub record: Option<Record>,
}

/// What is stored, and what is not yet.
#[derive(Debug, Default)]
pub struct Disk {
    /// Survives.
    pub records: BTreeMap<Key, Record>,
    /// Does not.
    pending: Vec<Write>,
}

impl Disk {
    /// Another write waits; whether it is the first.
    pub fn write(&mut self, write: Write) -> bool {
        self.pending.push(write);
        self.pending.len() == 1
    }

    /// All that waited is durable now, which it gives back.
    pub fn commit(&mut self) -> Vec<Write> {
        let written = std::mem::take(&mut self.pending);
        for write in &written {
            match &write.record {
                // As it is on a disk, where what is skipped by serde is not.
                Some(record) => self.records.insert(write.key.clone(), record.clone()),
                None => self.records.remove(&write.key),
            };
        }
        written
    }

    /// The process is gone, or with it everything.
    pub fn crash(&mut self, empty: bool) {
        self.pending.clear();
        if empty {
            self.records.clear();
        }
    }
}
