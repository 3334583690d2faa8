//! Tracks the open connections, and evicts one when a limit is reached.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pacing::RateLimiter;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Limits;
use crate::source::Source;

/// How long a connection counts as busy after a response, which the client may not have read yet.
const RESPONSE_TIME: Duration = Duration::from_secs(1);
/// Number of sources kept in memory before those that may open a full burst are removed.
const MAX_SOURCES: usize = 1024;

#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    start: Instant,
    next: u64,
    /// Keyed by sequence number and therefore ordered by age.
    open: BTreeMap<u64, Open>,
    rates: HashMap<Source, RateLimiter>,
}

#[derive(Debug)]
struct Open {
    /// `None` for clients of a Unix socket.
    source: Option<Source>,
    /// True if the connection has one of the reserved slots and does not count otherwise.
    reserved: bool,
    /// Since when the connection may be evicted; `None` while a request is processed. The time can
    /// be in the future.
    idle: Option<Instant>,
    evict: CancellationToken,
}

/// Why a connection is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// All connections that could be evicted in its favor process requests.
    Full,
    /// Its source opens connections too fast.
    Rate,
}

impl Refused {
    /// Returns the value of the metrics label `reason`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Rate => "rate",
        }
    }
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, start: Instant::now(), next: 0, open: BTreeMap::new(), rates: HashMap::new() }
    }

    /// Registers a new connection and returns its number. At a limit, it evicts the connection that
    /// has been waiting for a request for the longest time, since a well-behaved client sends its
    /// head immediately: of the same source if the limit is that of the source, else of the source
    /// with the most connections.
    fn admit(&mut self, source: Option<Source>) -> Result<(u64, CancellationToken), Refused> {
        let now = Instant::now();
        self.take_token(source, now)?;
        let has_slot = if source.is_some() && self.count(source) >= self.limits.source_connections {
            self.evict(now, |open| !open.reserved && open.source == source)
        } else if self.open.values().filter(|open| !open.reserved).count() >= self.limits.connections {
            self.evict(now, |open| !open.reserved)
        } else {
            true
        };
        let reserved = !has_slot;
        if reserved {
            let count = self.open.values().filter(|open| open.reserved).count();
            if count >= self.limits.reserved.connections && !self.evict(now, |open| open.reserved) {
                return Err(Refused::Full);
            }
        }
        let evict = CancellationToken::new();
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Open { source, reserved, idle: Some(now), evict: evict.clone() });
        Ok((number, evict))
    }

    fn take_token(&mut self, source: Option<Source>, now: Instant) -> Result<(), Refused> {
        let (Some(source), Some(rate)) = (source, self.limits.source_rate) else { return Ok(()) };
        let now = now - self.start;
        if self.rates.len() >= MAX_SOURCES && !self.rates.contains_key(&source) {
            self.rates.retain(|_, bucket| bucket.full_at() > now);
        }
        let new = || RateLimiter::new(Duration::from_secs(1) / rate.per_second, rate.burst);
        self.rates.entry(source).or_insert_with(new).take(now).map_err(|_| Refused::Rate)
    }

    /// Returns the number of connections of a source, without those in reserved slots.
    fn count(&self, source: Option<Source>) -> usize {
        self.open.values().filter(|open| !open.reserved && open.source == source).count()
    }

    /// Evicts the connection that has been idle for the longest time among those of the source with
    /// the most connections; returns false if there is none.
    fn evict(&mut self, now: Instant, is_candidate: impl Fn(&Open) -> bool) -> bool {
        let mut counts: HashMap<Option<Source>, usize> = HashMap::new();
        for open in self.open.values().filter(|open| is_candidate(open)) {
            *counts.entry(open.source).or_default() += 1;
        }
        let idle = self.open.iter().filter(|(_, open)| is_candidate(open)).filter_map(|(number, open)| {
            let idle = open.idle.filter(|idle| *idle <= now)?;
            Some((usize::MAX - counts[&open.source], idle, *number))
        });
        let Some((_, _, number)) = idle.min() else { return false };
        self.reset(number);
        true
    }

    fn reset(&mut self, number: u64) {
        if let Some(open) = self.open.remove(&number) {
            open.evict.cancel();
        }
    }
}

pub(super) struct Admitted {
    pub(super) slot: Slot,
    /// Cancelled when the connection must be reset.
    pub(super) evicted: CancellationToken,
}

/// Slot of a connection in the limits; it is freed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Slot(Arc<SlotInner>);

#[derive(Debug)]
struct SlotInner {
    connections: Arc<Mutex<Connections>>,
    number: u64,
}

pub(super) fn admit(
    connections: &Arc<Mutex<Connections>>,
    source: Option<Source>,
) -> Result<Admitted, Refused> {
    let (number, evicted) = lock(connections).admit(source)?;
    let slot = Slot(Arc::new(SlotInner { connections: connections.clone(), number }));
    Ok(Admitted { slot, evicted })
}

impl Slot {
    /// Excludes this connection from eviction while a request is processed.
    pub fn set_busy(&self) {
        self.set(None);
    }

    /// Makes this connection evictable while the body of a request is received.
    pub fn set_receiving(&self) {
        self.set(Some(Instant::now()));
    }

    /// Makes this connection evictable after a response.
    pub(super) fn set_idle(&self) {
        self.set(Some(Instant::now() + RESPONSE_TIME));
    }

    fn set(&self, idle: Option<Instant>) {
        if let Some(open) = lock(&self.0.connections).open.get_mut(&self.0.number) {
            open.idle = idle;
        }
    }

    /// True if this connection may only request the paths that slots are reserved for.
    pub(super) fn is_reserved(&self) -> bool {
        lock(&self.0.connections).open.get(&self.0.number).is_some_and(|open| open.reserved)
    }

    /// Resets this connection, also while its client does not read the response.
    pub fn evict(&self) {
        lock(&self.0.connections).reset(self.0.number);
    }

    /// Removes this connection from the limits, because another bound applies to it.
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
