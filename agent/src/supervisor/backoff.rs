//! Backoff between restarts of Envoy.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Upper limit of the first pause; it doubles with every restart.
const FIRST: Duration = Duration::from_millis(500);
/// Upper limit of every pause.
const LONGEST: Duration = Duration::from_secs(30);
/// Run time of an Envoy after which the backoff starts over.
const LIVED: Duration = Duration::from_secs(30);

/// Counter of consecutive exits.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    in_a_row: u32,
}

impl Backoff {
    /// Returns the pause after an Envoy that ran for `lived`. `random` is in 0..=1: full jitter
    /// spreads the restarts on machines whose Envoys exit at the same time.
    pub(super) fn next(&mut self, lived: Duration, random: f64) -> Duration {
        if lived >= LIVED {
            self.in_a_row = 0;
        }
        let most = FIRST.saturating_mul(1 << self.in_a_row.min(10)).min(LONGEST);
        self.in_a_row = self.in_a_row.saturating_add(1);
        most.mul_f64(random)
    }
}

/// Returns a number in 0..=1, derived from the random seed of the standard library's hash maps.
pub(super) fn random() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(0u8) >> 32).expect("32 bits are left");
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
