//! PURE. How many writes a second the API server gets: a bucket of tokens that holds those of one second.

use std::num::NonZeroU32;
use std::time::Duration;

/// The bucket, full at first.
#[derive(Debug)]
pub struct Rate {
    each: Duration,
    /// When the bucket would have been full: the past means full, up to one second ahead means some are left.
    full: Duration,
}

impl Rate {
    /// So many a second.
    pub fn new(per_second: NonZeroU32) -> Self {
        Self { each: Duration::from_secs(1) / per_second.get(), full: Duration::ZERO }
    }

    /// Takes a token, or says when there is one.
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
