//! Decides when changes are pushed: the first change after a quiet period is pushed immediately,
//! subsequent ones are pushed together.
//!
//! Time is an argument: a duration since an arbitrary start.

use std::time::Duration;

/// State of the debounce timer.
#[derive(Clone, Debug)]
pub struct Debounce {
    /// `--debounce`.
    quiet: Duration,
    /// `--debounce-max`.
    longest: Duration,
    /// Time of the last push. A change that arrives within `quiet` of it is delayed.
    busy: Option<Duration>,
    /// Times of the first and the last change that have not been pushed.
    waiting: Option<(Duration, Duration)>,
}

impl Debounce {
    /// Creates a debouncer. A change after a quiet period of `quiet` is pushed immediately; other
    /// changes are pushed once none has arrived for `quiet`, and after `longest` in any case.
    pub fn new(quiet: Duration, longest: Duration) -> Self {
        Self { quiet, longest, busy: None, waiting: None }
    }

    /// Records a change that must be pushed.
    pub fn changed(&mut self, now: Duration) {
        self.waiting = match self.waiting {
            Some((first, _)) => Some((first, now)),
            None => Some((now, now)),
        };
    }

    /// Returns when to push, which may be in the past. `None`: no change is pending.
    pub fn due(&self) -> Option<Duration> {
        let (first, last) = self.waiting?;
        let is_quiet = self.busy.is_none_or(|busy| busy.saturating_add(self.quiet) <= first);
        if is_quiet {
            return Some(first);
        }
        Some(last.saturating_add(self.quiet).min(first.saturating_add(self.longest)))
    }

    /// Records that all pending changes were pushed.
    pub fn pushed(&mut self, now: Duration) {
        self.waiting = None;
        self.busy = Some(now);
    }
}

#[cfg(test)]
mod tests;
