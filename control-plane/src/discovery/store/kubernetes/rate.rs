//! Limits writes per second to the API server with a token bucket that holds the tokens of one
//! second.

use std::num::NonZeroU32;
use std::time::Duration;

/// The token bucket; it starts full.
#[derive(Debug)]
pub struct Rate {
    each: Duration,
    /// When the bucket is full again: a time in the past means that it is full, and a time up to
    /// one second ahead means that some tokens are left.
    full: Duration,
}

impl Rate {
    pub fn new(per_second: NonZeroU32) -> Self {
        Self { each: Duration::from_secs(1) / per_second.get(), full: Duration::ZERO }
    }

    /// Takes a token, or returns the time at which one is available.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let full = self.full.max(now) + self.each;
        let ready = full.saturating_sub(Duration::from_secs(1));
        if ready > now {
            return Err(ready);
        }
        self.full = full;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
