//! Exponential backoff with a short maximum, since users wait for changes.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use tokio::time::Instant;

/// The first delay, which doubles.
const FIRST: Duration = Duration::from_millis(50);
pub(super) const MAX: Duration = Duration::from_secs(5);

/// Returns the delay after this many earlier attempts.
pub(super) fn delay(attempts: u32) -> Duration {
    pacing::exponential(FIRST, MAX, attempts)
}

/// How long a watch works until an earlier failure counts no longer.
const WORKS: Duration = Duration::from_secs(30);

/// The backoff of a watch.
#[derive(Default)]
pub(super) struct ShortBackoff {
    attempts: u32,
    /// When the last failure was.
    failed: Option<Instant>,
}

impl Iterator for ShortBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.failed.is_some_and(|failed| failed.elapsed() > WORKS) {
            self.attempts = 0;
        }
        self.failed = Some(Instant::now());
        let next = delay(self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        Some(next)
    }
}

impl Backoff for ShortBackoff {
    /// A watch calls this for each object. A list that succeeds, before a watch that fails, must not make the
    /// next list follow at once: an overloaded API server would get one after the other.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests;
