//! Exponential backoff between attempts.

use std::time::Duration;

/// Returns the delay after `failures` earlier consecutive failures: `first`, doubled for each of
/// them, but at most `max`.
pub fn exponential(first: Duration, max: Duration, failures: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures)).min(max)
}

/// Counter of consecutive failures, and the limits of the delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// The delays begin with `first` and double up to `max`.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, failures: 0 }
    }

    /// Changes the largest delay, and keeps the count of failures.
    pub fn set_max(&mut self, max: Duration) {
        self.max = max;
    }

    /// Starts over with the first delay.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Starts over if what has ended now had worked for at least the maximum delay. A shorter time
    /// does not count: a server that accepts every connection and drops it would otherwise receive
    /// attempts at the highest rate.
    pub fn reset_after(&mut self, worked: Duration) {
        if worked >= self.max {
            self.reset();
        }
    }

    /// Makes the maximum delay apply from now on, for failures that are expected to repeat.
    pub fn jump_to_max(&mut self) {
        self.failures = u32::MAX;
    }

    /// Records a failure and returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let delay = exponential(self.first, self.max, self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Like [`Self::next_delay`] with full jitter: `random`, which is in 0..=1, selects a delay
    /// between `min` and that delay. Jitter spreads the attempts of many clients of one server.
    pub fn next_with_jitter(&mut self, min: Duration, random: f64) -> Duration {
        min.saturating_add(self.next_delay().saturating_sub(min).mul_f64(random.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests;
