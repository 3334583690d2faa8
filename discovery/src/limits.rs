//! How many, and how often: connections, streams of one peer. Pure: time is a duration since some start.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::entries::Identity;

/// Streams of one identity and address at a time.
const STREAMS: u32 = 16;
/// New ones a second.
const STREAM_RATE: f64 = 1.0;
/// And at once.
const STREAM_BURST: f64 = 5.0;
/// Peers that are remembered before those are forgotten who may be.
const REMEMBERED: usize = 1024;

/// Tokens that come back with time.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    at: Duration,
}

impl TokenBucket {
    /// A full one: `burst` tokens, `rate` more a second.
    pub fn new(rate: f64, burst: f64) -> Self {
        Self { rate, burst, tokens: burst, at: Duration::ZERO }
    }

    /// One with a single token.
    pub fn almost_empty(rate: f64, burst: f64) -> Self {
        Self { tokens: 1.0, ..Self::new(rate, burst) }
    }

    fn fill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate).min(self.burst);
        self.at = self.at.max(now);
    }

    /// Takes one.
    ///
    /// # Errors
    /// After how long there is one.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        self.fill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) / self.rate))
    }

    fn is_full(&mut self, now: Duration) -> bool {
        self.fill(now);
        self.tokens >= self.burst
    }
}

/// Who opens streams: machines share the identity of their service account, so the address belongs to it.
pub type Peer = (Identity, IpAddr);

/// The streams of each peer.
#[derive(Debug, Default)]
pub struct Admission {
    peers: HashMap<Peer, Place>,
}

#[derive(Debug)]
struct Place {
    open: u32,
    bucket: TokenBucket,
}

/// Why a stream is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// So many are open.
    #[error("too many streams of this identity and address: {STREAMS}")]
    Streams,
    /// Too soon after the last ones.
    #[error("too many new streams of this identity and address in a short time")]
    Rate,
}

impl Admission {
    /// A new stream of `peer`; [`Admission::leave`] gives its place back.
    ///
    /// # Errors
    /// Why there is none.
    pub fn enter(&mut self, peer: &Peer, now: Duration) -> Result<(), Refused> {
        if self.peers.len() >= REMEMBERED && !self.peers.contains_key(peer) {
            self.peers.retain(|_, place| place.open > 0 || !place.bucket.is_full(now));
        }
        let new = || Place { open: 0, bucket: TokenBucket::new(STREAM_RATE, STREAM_BURST) };
        let place = self.peers.entry(peer.clone()).or_insert_with(new);
        if place.open >= STREAMS {
            return Err(Refused::Streams);
        }
        place.bucket.take(now).map_err(|_| Refused::Rate)?;
        place.open += 1;
        Ok(())
    }

    /// A stream of `peer` ended.
    pub fn leave(&mut self, peer: &Peer) {
        if let Some(place) = self.peers.get_mut(peer) {
            place.open = place.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
