//! PURE, but for [`random`]. How long to wait before Envoy is started again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The longest pause after the first end, doubling ...
const FIRST: Duration = Duration::from_millis(500);
/// ... to this.
const LONGEST: Duration = Duration::from_secs(30);
/// An Envoy that lived so long begins anew.
const LIVED: Duration = Duration::from_secs(30);

/// The ends so far.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    in_a_row: u32,
}

impl Backoff {
    /// The pause after a life of this length. `random` is in 0..=1: with full jitter, many machines whose Envoys die together do not
    /// start them together.
    pub(super) fn next(&mut self, lived: Duration, random: f64) -> Duration {
        if lived >= LIVED {
            self.in_a_row = 0;
        }
        let most = FIRST.saturating_mul(1 << self.in_a_row.min(10)).min(LONGEST);
        self.in_a_row = self.in_a_row.saturating_add(1);
        most.mul_f64(random)
    }
}

/// A number in 0..=1. The standard library seeds its hash maps with the system's randomness.
pub(super) fn random() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(0u8) >> 32).expect("32 bits are left");
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
