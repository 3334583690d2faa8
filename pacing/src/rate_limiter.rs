//! Rate limiter: a token bucket, implemented as the generic cell rate algorithm (GCRA).

use std::time::Duration;

/// A bucket of tokens. Times are durations since an arbitrary start.
#[derive(Clone, Copy, Debug)]
pub struct RateLimiter {
    /// Time in which one token is added.
    interval: Duration,
    /// Size of the bucket.
    burst: u32,
    /// When the bucket is full again, unless a token is taken before.
    full_at: Duration,
}

impl RateLimiter {
    /// Creates a full bucket of `burst` tokens, at least one, to which a token is added every
    /// `interval`.
    pub const fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, burst, full_at: Duration::ZERO }
    }

    /// Creates a bucket that holds one token at time 0.
    pub const fn with_one_token(interval: Duration, burst: u32) -> Self {
        Self { full_at: interval.saturating_mul(burst.saturating_sub(1)), ..Self::new(interval, burst) }
    }

    /// Takes a token, or returns the time at which one is available. A clock that goes backwards
    /// adds no tokens.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        self.take_many(1, now)
    }

    /// Like [`Self::take`], for several tokens at once. More than the bucket holds are never available.
    pub fn take_many(&mut self, tokens: u32, now: Duration) -> Result<(), Duration> {
        let full_at = self.full_at.max(now).saturating_add(self.interval.saturating_mul(tokens));
        let ready = full_at.saturating_sub(self.interval.saturating_mul(self.burst.max(1)));
        if ready > now {
            return Err(ready);
        }
        self.full_at = full_at;
        Ok(())
    }

    /// Returns when no token is missing, so that a new bucket would do the same.
    pub fn full_at(&self) -> Duration {
        self.full_at
    }
}

#[cfg(test)]
mod tests;
