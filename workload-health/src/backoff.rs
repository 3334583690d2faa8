//! Backoff between connection attempts, exponential with full jitter. Pure: the random number is an
//! argument.

use std::time::Duration;

/// Lower bound of every pause.
const LEAST: Duration = Duration::from_millis(100);
/// Upper bound of the pause after the first failure; it doubles with each failure up to [`MOST`].
const FIRST: Duration = Duration::from_millis(500);
/// The largest upper bound of a pause.
const MOST: Duration = Duration::from_secs(30);
/// A stream that lasted at least this long resets the backoff. A shorter one does not; otherwise a
/// server that accepts every stream and drops it would receive attempts at the highest rate.
const LIVED: Duration = Duration::from_secs(30);
/// Number of failures after which the upper bound no longer grows.
const STEPS: u32 = 6;

/// Counter of consecutive failed attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backoff {
    in_a_row: u32,
}

impl Backoff {
    /// Records that a stream ended after `lived`.
    pub fn lived(&mut self, lived: Duration) {
        if lived >= LIVED {
            self.in_a_row = 0;
        }
    }

    /// Records that the server rejected this client's identity or request. Another attempt would be
    /// rejected too, so the longest pause applies at once.
    pub fn refused(&mut self) {
        self.in_a_row = STEPS;
    }

    /// Returns the pause before the next attempt. Full jitter keeps agents that lost the same
    /// server from reconnecting at the same time. `random` is in 0..=1.
    pub fn next(&mut self, random: f64) -> Duration {
        let most = FIRST.saturating_mul(1 << self.in_a_row.min(STEPS)).min(MOST);
        self.in_a_row = self.in_a_row.saturating_add(1);
        LEAST + (most - LEAST).mul_f64(random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests;
