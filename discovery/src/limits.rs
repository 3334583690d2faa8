//! Limits of the rate and number of streams of each peer. Time is an argument: a duration since an
//! arbitrary start.

use std::net::IpAddr;
use std::time::Duration;

use pacing::source::Source;
use pacing::{Exceeded, RateLimiter, SourceLimits};

use crate::entries::Identity;

/// Maximum number of concurrent streams per identity and address.
const STREAMS: u32 = 16;
/// A peer may open one stream per interval after a burst.
const STREAM_INTERVAL: Duration = Duration::from_secs(1);
const STREAM_BURST: u32 = 5;
/// Number of concurrent streams per identity and source, for each machine that they may register. A
/// machine has one stream, and two while it reconnects; its Envoy may have another.
const STREAMS_PER_MACHINE: u32 = 4;
/// A source may open one stream per interval after a burst of as many as it may have.
const SOURCE_STREAM_INTERVAL: Duration = Duration::from_millis(250);

/// Identity and address of a peer. Machines may share the identity of a service account, so the
/// address is part of the key.
pub type Peer = (Identity, IpAddr);

/// Tracks the open streams and the stream rate of each peer, and of all peers with the same identity and
/// source: a client can have all addresses of an IPv6 network.
#[derive(Debug)]
pub struct Admission {
    peers: SourceLimits<Peer>,
    sources: SourceLimits<(Identity, Source)>,
}

/// Reason why a stream is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    #[error("too many open streams for this identity and address, at most {STREAMS} are allowed")]
    Streams,
    #[error("new streams for this identity and address are opened too fast")]
    Rate,
    #[error(
        "too many streams for this identity and network are open or opened too fast (--max-machines-per-source)"
    )]
    Source,
}

impl Admission {
    /// `machines` is the number of machines that a source may register.
    pub fn new(machines: usize) -> Self {
        let machines = u32::try_from(machines).unwrap_or(u32::MAX);
        let streams = machines.saturating_mul(STREAMS_PER_MACHINE).max(STREAMS);
        Self {
            peers: SourceLimits::new(STREAMS, RateLimiter::new(STREAM_INTERVAL, STREAM_BURST)),
            sources: SourceLimits::new(streams, RateLimiter::new(SOURCE_STREAM_INTERVAL, streams)),
        }
    }

    /// Admits a new stream of `peer`. [`Admission::release`] releases it.
    ///
    /// # Errors
    /// Returns the limit that the stream exceeds.
    pub fn admit(&mut self, peer: &Peer, now: Duration) -> Result<(), AdmissionError> {
        let source = (peer.0.clone(), peer.1.into());
        self.sources.open(&source, now).map_err(|_| AdmissionError::Source)?;
        let admitted = self.peers.open(peer, now);
        if let Err(exceeded) = admitted {
            self.sources.close(&source);
            return Err(match exceeded {
                Exceeded::Open => AdmissionError::Streams,
                Exceeded::Rate => AdmissionError::Rate,
            });
        }
        // There is a token, since `open` requires one.
        let _ = (self.peers.take(peer, now), self.sources.take(&source, now));
        Ok(())
    }

    /// Releases a stream of `peer` that ended.
    pub fn release(&mut self, peer: &Peer) {
        self.peers.close(peer);
        self.sources.close(&(peer.0.clone(), peer.1.into()));
    }
}

#[cfg(test)]
mod tests;
