//! Limits of the rate and number of streams of each peer. Time is an argument: a duration since an
//! arbitrary start.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use pacing::RateLimiter;

use crate::entries::Identity;

/// Maximum number of concurrent streams per identity and address.
const STREAMS: u32 = 16;
/// A peer may open one stream per interval after a burst.
const STREAM_INTERVAL: Duration = Duration::from_secs(1);
const STREAM_BURST: u32 = 5;
/// Number of peers kept in memory before idle ones that may open a full burst are removed.
const MAX_PEERS: usize = 1024;

/// Identity and address of a peer. Machines may share the identity of a service account, so the
/// address is part of the key.
pub type Peer = (Identity, IpAddr);

/// Tracks the open streams and the stream rate of each peer.
#[derive(Debug, Default)]
pub struct Admission {
    peers: HashMap<Peer, PeerState>,
}

#[derive(Debug)]
struct PeerState {
    open: u32,
    rate: RateLimiter,
}

/// Reason why a stream is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    #[error("too many open streams for this identity and address, at most {STREAMS} are allowed")]
    Streams,
    #[error("new streams for this identity and address are opened too fast")]
    Rate,
}

impl Admission {
    /// Admits a new stream of `peer`. [`Admission::release`] releases it.
    ///
    /// # Errors
    /// Returns the limit that the stream exceeds.
    pub fn admit(&mut self, peer: &Peer, now: Duration) -> Result<(), AdmissionError> {
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(peer) {
            self.peers.retain(|_, place| place.open > 0 || !place.rate.is_full(now));
        }
        let new = || PeerState { open: 0, rate: RateLimiter::new(STREAM_INTERVAL, STREAM_BURST) };
        let place = self.peers.entry(peer.clone()).or_insert_with(new);
        if place.open >= STREAMS {
            return Err(AdmissionError::Streams);
        }
        place.rate.take(now).map_err(|_| AdmissionError::Rate)?;
        place.open += 1;
        Ok(())
    }

    /// Releases a stream of `peer` that ended.
    pub fn release(&mut self, peer: &Peer) {
        if let Some(place) = self.peers.get_mut(peer) {
            place.open = place.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
