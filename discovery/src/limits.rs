//! Rate limits and concurrency limits of connections and streams. Time is an argument: a duration
//! since an arbitrary start.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::entries::Identity;

/// Maximum number of concurrent streams per identity and address.
const STREAMS: u32 = 16;
/// New streams per second and peer.
const STREAM_RATE: f64 = 1.0;
/// Number of streams that a peer may open in a burst.
const STREAM_BURST: f64 = 5.0;
/// Number of peers kept in memory before idle ones with a full bucket are removed.
const MAX_PEERS: usize = 1024;

/// A token bucket rate limiter, implemented as generic cell rate algorithm (GCRA).
#[derive(Clone, Debug)]
pub struct TokenBucket {
    /// Time in which the bucket gains one token.
    interval: Duration,
    /// Time in which the bucket gains all tokens but one.
    tolerance: Duration,
    full_at: Duration,
}

impl TokenBucket {
    /// Creates a full bucket of `burst` tokens that gains `rate` tokens per second.
    pub fn new(rate: f64, burst: f64) -> Self {
        let interval = Duration::from_secs_f64(rate.recip());
        Self { interval, tolerance: interval.mul_f64((burst - 1.0).max(0.0)), full_at: Duration::ZERO }
    }

    /// Creates a bucket that holds a single token.
    pub fn almost_empty(rate: f64, burst: f64) -> Self {
        let bucket = Self::new(rate, burst);
        Self { full_at: bucket.tolerance, ..bucket }
    }

    /// Takes one token from the bucket.
    ///
    /// # Errors
    /// Returns the time until a token is available.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let full_at = self.full_at.max(now);
        match full_at.saturating_sub(now.saturating_add(self.tolerance)) {
            Duration::ZERO => {
                self.full_at = full_at.saturating_add(self.interval);
                Ok(())
            }
            wait => Err(wait),
        }
    }
}

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
    bucket: TokenBucket,
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
            self.peers.retain(|_, place| place.open > 0 || place.bucket.full_at > now);
        }
        let new = || PeerState { open: 0, bucket: TokenBucket::new(STREAM_RATE, STREAM_BURST) };
        let place = self.peers.entry(peer.clone()).or_insert_with(new);
        if place.open >= STREAMS {
            return Err(AdmissionError::Streams);
        }
        place.bucket.take(now).map_err(|_| AdmissionError::Rate)?;
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
