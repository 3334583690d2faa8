//! Tracks the open connections, and evicts one when a limit is reached.

use std::sync::Arc;
use std::time::Duration;

use pacing::{Full, RateLimiter, SourceLimits};
use tokio::time::Instant;

use super::{Limits, Peer};
use crate::shared_pool::{SharedPool, Slot};
use crate::source::Source;

#[derive(Debug)]
pub(super) struct Connections {
    /// `None` is the source of clients of a Unix socket.
    open: SharedPool,
    trusted: SharedPool,
    reserved: SharedPool,
    start: Instant,
    rates: Option<SourceLimits<Source>>,
}

#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) slot: Arc<Slot>,
    /// True if the connection may only request the paths that slots are reserved for.
    pub(super) is_reserved: bool,
    /// True if the client is trusted.
    pub(super) is_trusted: bool,
    trusted: SharedPool,
}

impl Admitted {
    /// Gives the connection one of the slots for trusted clients, if there is one.
    pub(super) fn trust(&mut self, source: Option<Source>) {
        if !self.is_trusted
            && let Ok(slot) = self.trusted.admit(source)
        {
            self.slot = Arc::new(slot);
            self.is_reserved = false;
        }
        self.is_trusted = true;
    }
}

/// Why a connection is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// All connections that could be evicted in its favor are in use.
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
            open: SharedPool::new(
                limits.connections.saturating_sub(limits.trusted_connections),
                limits.source_connections,
            ),
            trusted: SharedPool::new(limits.trusted_connections, usize::MAX),
            reserved: SharedPool::new(limits.reserved.connections, usize::MAX),
            start: Instant::now(),
            rates: limits.source_rate.map(rate),
        }
    }

    /// Registers a new connection. A trusted client of an IPv6 network shares its limits with nobody else there.
    pub(super) fn admit_peer(&mut self, peer: Peer, is_trusted: bool) -> Result<Admitted, Refused> {
        self.admit(if is_trusted { peer.source_alone() } else { peer.source() }, is_trusted)
    }

    /// Registers a new connection. At a limit, it evicts one that waits for a request, since a
    /// well-behaved client sends its head immediately, or one of a source that has more.
    pub(super) fn admit(&mut self, source: Option<Source>, is_trusted: bool) -> Result<Admitted, Refused> {
        if let (Some(source), Some(rates)) = (source, &mut self.rates) {
            rates.take(&source, self.start.elapsed()).map_err(|_| Refused::Rate)?;
        }
        let trusted = if is_trusted { self.trusted.admit(source) } else { Err(Full) };
        let (slot, is_reserved) = match trusted.or_else(|Full| self.open.admit(source)) {
            Ok(slot) => (slot, false),
            Err(Full) => (self.reserved.admit(source).map_err(|Full| Refused::Full)?, true),
        };
        Ok(Admitted { slot: Arc::new(slot), is_reserved, is_trusted, trusted: self.trusted.clone() })
    }
}

#[cfg(test)]
mod tests;
