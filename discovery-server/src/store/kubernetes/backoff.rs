//! Exponential backoff with a short maximum, since users wait for changes.

use std::time::Duration;

use kube::runtime::utils::Backoff;

/// The first delay, which doubles.
const FIRST: Duration = Duration::from_millis(50);
pub(super) const MAX: Duration = Duration::from_secs(5);

/// Returns the delay after this many earlier attempts.
pub(super) fn delay(attempts: u32) -> Duration {
    pacing::exponential(FIRST, MAX, attempts)
}

/// Number of attempts so far.
#[derive(Default)]
pub(super) struct ShortBackoff(u32);

impl Iterator for ShortBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let next = delay(self.0);
        self.0 = self.0.saturating_add(1);
        Some(next)
    }
}

impl Backoff for ShortBackoff {
    fn reset(&mut self) {
        self.0 = 0;
    }
}
