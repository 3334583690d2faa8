//! When a change is pushed: the first one after a quiet time at once, those that follow together.
//!
//! Pure: the caller brings the time, as a duration since its start.

use std::time::Duration;

/// Changes that wait to be pushed.
#[derive(Clone, Debug)]
pub struct Debounce {
    /// `--debounce`.
    quiet: Duration,
    /// `--debounce-max`.
    longest: Duration,
    /// The last change or push. While that is younger than `quiet`, a change waits.
    busy: Option<Duration>,
    /// First and last change that wait.
    waiting: Option<(Duration, Duration)>,
}

impl Debounce {
    /// After a quiet of `quiet`, a change is pushed at once; others wait for so long a quiet, at most `longest`.
    pub fn new(quiet: Duration, longest: Duration) -> Self {
        Self { quiet, longest, busy: None, waiting: None }
    }

    /// Something changed.
    pub fn changed(&mut self, now: Duration) {
        self.waiting = match self.waiting {
            Some((first, _)) => Some((first, now)),
            None => Some((now, now)),
        };
    }

    /// When to push; at the latest now if that is in the past. `None`: nothing waits.
    pub fn due(&self) -> Option<Duration> {
        let (first, last) = self.waiting?;
        let is_quiet = self.busy.is_none_or(|busy| busy.saturating_add(self.quiet) <= first);
        if is_quiet {
            return Some(first);
        }
        Some(last.saturating_add(self.quiet).min(first.saturating_add(self.longest)))
    }

    /// All that waited has been pushed.
    pub fn pushed(&mut self, now: Duration) {
        self.waiting = None;
        self.busy = Some(now);
    }
}

#[cfg(test)]
mod tests;
