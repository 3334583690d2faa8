//! Tracks the open connections by age and evicts one when the limit is reached.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    next: u64,
    /// Keyed by sequence number and therefore ordered by age. The value is `Some` while the request
    /// head is incomplete: sending on it resets the connection.
    open: BTreeMap<u64, Option<oneshot::Sender<()>>>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self { most, next: 0, open: BTreeMap::new() }
    }

    /// Registers a new connection and returns its number. At the limit, it evicts the oldest
    /// connection with an incomplete head, because a well-behaved client sends its head
    /// immediately. Returns `None` if there is no such connection.
    fn admit(&mut self) -> Option<(u64, oneshot::Receiver<()>)> {
        if self.open.len() >= self.most {
            let oldest = self.open.iter().find(|(_, evict)| evict.is_some()).map(|(number, _)| *number)?;
            if let Some(Some(evict)) = self.open.remove(&oldest) {
                let _ = evict.send(());
            }
        }
        let (evict, evicted) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Some(evict));
        Some((number, evicted))
    }
}

pub(super) struct Admitted {
    pub(super) slot: Slot,
    /// Resolves to `Ok` when the connection must be reset.
    pub(super) evicted: oneshot::Receiver<()>,
}

/// Slot of a connection in the limit; it is freed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Slot(Arc<Place>);

#[derive(Debug)]
struct Place {
    connections: Arc<Mutex<Connections>>,
    number: u64,
}

pub(super) fn admit(connections: &Arc<Mutex<Connections>>) -> Option<Admitted> {
    let (number, evicted) = lock(connections).admit()?;
    let slot = Slot(Arc::new(Place { connections: connections.clone(), number }));
    Some(Admitted { slot, evicted })
}

impl Slot {
    /// Excludes this connection from eviction.
    pub(super) fn head_is_complete(&self) {
        if let Some(evict) = lock(&self.0.connections).open.get_mut(&self.0.number) {
            *evict = None;
        }
    }

    /// Removes this connection from the limit, because another bound applies to it.
    pub fn leave(&self) {
        lock(&self.0.connections).open.remove(&self.0.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.connections).open.remove(&self.number);
    }
}

fn lock(connections: &Mutex<Connections>) -> MutexGuard<'_, Connections> {
    connections.lock().expect("nothing panics while it holds this lock")
}

#[cfg(test)]
mod tests;
