//! Limits of the rate and number of streams of each peer. Time is an argument: a duration since an
//! arbitrary start.

use std::net::IpAddr;
use std::time::Duration;

use pacing::{Exceeded, RateLimiter, SourceLimits};

use crate::entries::Identity;

/// Maximum number of concurrent streams per identity and address.
const STREAMS: u32 = 16;
/// A peer may open one stream per interval after a burst.
const STREAM_INTERVAL: Duration = Duration::from_secs(1);
const STREAM_BURST: u32 = 5;

/// Identity and address of a peer. Machines may share the identity of a service account, so the
/// address is part of the key.
pub type Peer = (Identity, IpAddr);

/// Tracks the open streams and the stream rate of each peer.
#[derive(Debug)]
pub struct Admission(SourceLimits<Peer>);

/// Reason why a stream is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    #[error("too many open streams for this identity and address, at most {STREAMS} are allowed")]
    Streams,
    #[error("new streams for this identity and address are opened too fast")]
    Rate,
}

impl Default for Admission {
    fn default() -> Self {
        Self(SourceLimits::new(STREAMS, RateLimiter::new(STREAM_INTERVAL, STREAM_BURST)))
    }
}

impl Admission {
    /// Admits a new stream of `peer`. [`Admission::release`] releases it.
    ///
    /// # Errors
    /// Returns the limit that the stream exceeds.
    pub fn admit(&mut self, peer: &Peer, now: Duration) -> Result<(), AdmissionError> {
        let admitted = self.0.open(peer, now).and_then(|()| self.0.take(peer, now));
        admitted.map_err(|exceeded| match exceeded {
            Exceeded::Open => AdmissionError::Streams,
            Exceeded::Rate => AdmissionError::Rate,
        })
    }

    /// Releases a stream of `peer` that ended.
    pub fn release(&mut self, peer: &Peer) {
        self.0.close(peer);
    }
}

#[cfg(test)]
mod tests;
