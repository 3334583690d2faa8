//! Backoff between connection attempts, exponential with full jitter. Pure: the random number is an
//! argument.

use std::time::Duration;

/// Lower bound of every pause.
const MIN: Duration = Duration::from_millis(100);
/// Upper bound of the pause after the first failure; it doubles with each failure up to [`MAX`].
const INITIAL_MAX: Duration = Duration::from_millis(500);
/// The largest upper bound of a pause.
const MAX: Duration = Duration::from_secs(30);
/// A stream that lasted at least this long resets the backoff. A shorter one does not; otherwise a
/// server that accepts every stream and drops it would receive attempts at the highest rate.
const RESET_AFTER: Duration = Duration::from_secs(30);
/// Number of failures after which the upper bound no longer grows.
const STEPS: u32 = 6;

/// Counter of consecutive failed attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Records that a stream ended after `lasted`.
    pub fn stream_ended(&mut self, lasted: Duration) {
        if lasted >= RESET_AFTER {
            self.failures = 0;
        }
    }

    /// Records that the server rejected this client's identity or request. Another attempt would be
    /// rejected too, so the longest pause applies at once.
    pub fn rejected(&mut self) {
        self.failures = STEPS;
    }

    /// Returns the pause before the next attempt. Full jitter keeps agents that lost the same
    /// server from reconnecting at the same time. `random` is in 0..=1.
    pub fn next(&mut self, random: f64) -> Duration {
        let max = INITIAL_MAX.saturating_mul(1 << self.failures.min(STEPS)).min(MAX);
        self.failures = self.failures.saturating_add(1);
        MIN + (max - MIN).mul_f64(random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests;
