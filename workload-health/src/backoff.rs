//! PURE. How long to wait before the next attempt at a stream. Randomness is an argument.

use std::time::Duration;

/// The shortest pause.
const LEAST: Duration = Duration::from_millis(100);
/// The longest pause after the first failure, doubling ...
const FIRST: Duration = Duration::from_millis(500);
/// ... to this.
const MOST: Duration = Duration::from_secs(30);
/// A stream that lived so long begins anew. A shorter one does not: a server that takes every stream and drops it would be asked all
/// the time.
const LIVED: Duration = Duration::from_secs(30);
/// From here on the longest pause stays.
const STEPS: u32 = 6;

/// Attempts that came to nothing, in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backoff {
    in_a_row: u32,
}

impl Backoff {
    /// A stream ended after this long.
    pub fn lived(&mut self, lived: Duration) {
        if lived >= LIVED {
            self.in_a_row = 0;
        }
    }

    /// The server said no to who we are or to what we said, and will say so again.
    pub fn refused(&mut self) {
        self.in_a_row = STEPS;
    }

    /// The pause before the next attempt: full jitter, so that agents that lost their server together do not come back together.
    /// `random` is in 0..=1.
    pub fn next(&mut self, random: f64) -> Duration {
        let most = FIRST.saturating_mul(1 << self.in_a_row.min(STEPS)).min(MOST);
        self.in_a_row = self.in_a_row.saturating_add(1);
        LEAST + (most - LEAST).mul_f64(random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests;
