//! Tracks the open connections, and evicts one when a limit is reached.

use std::sync::Arc;
use std::time::Duration;

use pacing::{RateLimiter, SourceLimits};
use tokio::time::Instant;

use super::Limits;
use crate::shared_pool::{Place, SharedPool};
use crate::source::Source;

/// How long a connection counts as busy after a response, which the client may not have read yet.
const RESPONSE_TIME: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Connections {
    /// `None` is the source of clients of a Unix socket.
    open: SharedPool,
    reserved: SharedPool,
    start: Instant,
    rates: Option<SourceLimits<Source>>,
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
        let rate = |rate: super::Rate| {
            let bucket = RateLimiter::new(Duration::from_secs(1) / rate.per_second, rate.burst);
            SourceLimits::new(u32::MAX, bucket)
        };
        Self {
            open: SharedPool::new(limits.connections, limits.source_connections),
            reserved: SharedPool::new(limits.reserved.connections, usize::MAX),
            start: Instant::now(),
            rates: limits.source_rate.map(rate),
        }
    }

    /// Registers a new connection. At a limit, it evicts the one that has been waiting for a request
    /// for the longest time, since a well-behaved client sends its head immediately.
    pub(super) fn admit(&mut self, source: Option<Source>) -> Result<Slot, Refused> {
        if let (Some(source), Some(rates)) = (source, &mut self.rates) {
            rates.take(&source, self.start.elapsed()).map_err(|_| Refused::Rate)?;
        }
        let (place, reserved) = match self.open.admit(source) {
            Ok(place) => (place, false),
            Err(_) => (self.reserved.admit(source).map_err(|_| Refused::Full)?, true),
        };
        Ok(Slot { place: Arc::new(place), reserved })
    }
}

/// Slot of a connection in the limits; it is freed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Slot {
    place: Arc<Place>,
    reserved: bool,
}

impl Slot {
    /// Excludes this connection from eviction while a request is processed.
    pub fn set_busy(&self) {
        self.place.set_busy();
    }

    /// Makes this connection evictable while the body of a request is received.
    pub fn set_receiving(&self) {
        self.place.set_idle(Duration::ZERO);
    }

    /// Makes this connection evictable after a response.
    pub(super) fn set_idle(&self) {
        self.place.set_idle(RESPONSE_TIME);
    }

    /// True if this connection may only request the paths that slots are reserved for.
    pub(super) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// Waits until this connection must be reset.
    pub(super) async fn evicted(&self) {
        self.place.evicted().await;
    }

    /// Resets this connection, also while its client does not read the response.
    pub fn evict(&self) {
        self.place.evict();
    }

    /// Removes this connection from the limits, because another bound applies to it.
    pub fn release(&self) {
        self.place.release();
    }
}

#[cfg(test)]
mod tests;
