//! Which connections are open, oldest first, and which of them may be given up for a new one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// All that are counted.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    next: u64,
    /// By number, so by age. The value is there as long as the head is not complete: sending on it resets the connection.
    open: BTreeMap<u64, Option<oneshot::Sender<()>>>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self { most, next: 0, open: BTreeMap::new() }
    }

    /// The number of a new connection. If there is no room, the oldest one whose head is not complete has to go: an honest caller sends
    /// its head at once. Without such a one there is no room.
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

/// A connection that may go on.
pub(super) struct Admitted {
    pub(super) slot: Slot,
    /// Resolves to `Ok` when the connection has to go.
    pub(super) evicted: oneshot::Receiver<()>,
}

/// A connection's place among those that are counted; free again when the last clone is dropped.
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
    /// From now on this connection is not given up for another one.
    pub(super) fn head_is_complete(&self) {
        if let Some(evict) = lock(&self.0.connections).open.get_mut(&self.0.number) {
            *evict = None;
        }
    }

    /// From now on this connection is not counted: something else bounds it.
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
