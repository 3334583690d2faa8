//! Tracks the open connections and evicts one when the limit is reached.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a connection counts as busy after a response, which the client may not have read yet.
const RESPONSE_TIME: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Connections {
    limit: usize,
    next: u64,
    /// Keyed by sequence number and therefore ordered by age.
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    /// Since when the connection may be evicted; `None` while a request is processed. The time can
    /// be in the future.
    idle: Option<Instant>,
    evict: CancellationToken,
}

impl Connections {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, next: 0, open: BTreeMap::new() }
    }

    /// Registers a new connection and returns its number. At the limit, it evicts the connection
    /// that has been waiting for a request for the longest time: a well-behaved client sends its
    /// head immediately. Returns `None` if there is no such connection.
    fn admit(&mut self) -> Option<(u64, CancellationToken)> {
        let now = Instant::now();
        if self.open.len() >= self.limit {
            let idle = self.open.iter().filter_map(|(number, open)| Some((open.idle?, *number)));
            let (_, oldest) = idle.filter(|(idle, _)| *idle <= now).min()?;
            if let Some(open) = self.open.remove(&oldest) {
                open.evict.cancel();
            }
        }
        let evict = CancellationToken::new();
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Open { idle: Some(now), evict: evict.clone() });
        Some((number, evict))
    }
}

pub(super) struct Admitted {
    pub(super) slot: Slot,
    /// Cancelled when the connection must be reset.
    pub(super) evicted: CancellationToken,
}

/// Slot of a connection in the limit; it is freed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Slot(Arc<SlotInner>);

#[derive(Debug)]
struct SlotInner {
    connections: Arc<Mutex<Connections>>,
    number: u64,
}

pub(super) fn admit(connections: &Arc<Mutex<Connections>>) -> Option<Admitted> {
    let (number, evicted) = lock(connections).admit()?;
    let slot = Slot(Arc::new(SlotInner { connections: connections.clone(), number }));
    Some(Admitted { slot, evicted })
}

impl Slot {
    /// Excludes this connection from eviction while a request is processed.
    pub(super) fn set_busy(&self) {
        self.set(None);
    }

    /// Makes this connection evictable again.
    pub(super) fn set_idle(&self) {
        self.set(Some(Instant::now() + RESPONSE_TIME));
    }

    fn set(&self, idle: Option<Instant>) {
        if let Some(open) = lock(&self.0.connections).open.get_mut(&self.0.number) {
            open.idle = idle;
        }
    }

    /// Removes this connection from the limit, because another bound applies to it.
    pub fn release(&self) {
        lock(&self.0.connections).open.remove(&self.0.number);
    }
}

impl Drop for SlotInner {
    fn drop(&mut self) {
        lock(&self.connections).open.remove(&self.number);
    }
}

fn lock(connections: &Mutex<Connections>) -> MutexGuard<'_, Connections> {
    connections.lock().expect("nothing panics while it holds this lock")
}

#[cfg(test)]
mod tests;
