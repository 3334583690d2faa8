//! Decides when the last good configuration is written. A write takes as long as the disk needs, and
//! there is at most one at a time.

use std::time::Duration;

/// Changes within this time are written together.
const DELAY: Duration = Duration::from_secs(1);
/// Minimum time between the starts of two writes.
const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum pause after failed writes; the pause doubles from [`INTERVAL`] on.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The content of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// The configuration and its age.
    Content,
    /// Only the age: the file contains the newest configuration.
    Age,
}

/// The meaning of a completed write for an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The same as the write before.
    Same,
    /// The cause of the failure is new.
    Failed,
    /// The first success after a failure.
    Recovered,
}

#[derive(Debug, Default)]
pub(super) struct Storage {
    /// False if nothing is ever stored.
    is_enabled: bool,
    /// When the content must be written; `None` if the file contains it, or a write does.
    content_at: Option<Duration>,
    must_write_age: bool,
    writing: Option<Write>,
    /// True if the file contains the newest configuration.
    is_current: bool,
    /// The next content is not written before.
    earliest: Duration,
    /// Failures since the last success, and the cause of the last one.
    failures: u32,
    error: Option<String>,
    /// True once the agent terminates: writes are due immediately and not tried again.
    is_terminating: bool,
}

impl Storage {
    /// `is_current` is true if the configuration was read from the file.
    pub(super) fn new(is_enabled: bool, is_current: bool) -> Self {
        Self { is_enabled, is_current, ..Self::default() }
    }

    /// Records a change of the configuration.
    pub(super) fn changed(&mut self, now: Duration) {
        if !self.is_enabled {
            return;
        }
        let at = if self.is_terminating { now } else { self.earliest.max(now + DELAY) };
        self.content_at.get_or_insert(at);
        self.is_current = false;
    }

    /// Records that a control plane has confirmed the configuration.
    pub(super) fn confirmed(&mut self) {
        // A write of the content includes the age.
        self.must_write_age |= self.is_current && self.content_at.is_none();
    }

    /// Records that the file contains another configuration, which keeps its age.
    pub(super) fn outdated(&mut self) {
        self.is_current = false;
    }

    /// Makes pending changes due, and lets the last attempt be the last one.
    pub(super) fn terminate(&mut self, now: Duration) {
        self.is_terminating = true;
        self.content_at = self.content_at.map(|at| at.min(now));
    }

    /// When [`Storage::start`] returns something. `None` during a write.
    pub(super) fn due(&self) -> Option<Duration> {
        match self.writing {
            Some(_) => None,
            None if self.must_write_age && self.content_at.is_none() => Some(Duration::ZERO),
            None => self.content_at,
        }
    }

    /// Returns what must be written now. [`Storage::finished`] must follow.
    pub(super) fn start(&mut self, now: Duration) -> Option<Write> {
        self.due().filter(|due| now >= *due)?;
        self.must_write_age = false;
        self.writing = Some(match self.content_at.take() {
            Some(_) => {
                self.earliest = now + INTERVAL;
                self.is_current = true;
                Write::Content
            }
            None => Write::Age,
        });
        self.writing
    }

    /// Records the result of a write.
    pub(super) fn finished(&mut self, now: Duration, result: Result<(), String>) -> Outcome {
        let Some(write) = self.writing.take() else { return Outcome::Same };
        let Err(error) = result else {
            let was_failing = self.error.is_some();
            if write == Write::Content {
                (self.failures, self.error) = (0, None);
            }
            return if was_failing && self.error.is_none() { Outcome::Recovered } else { Outcome::Same };
        };
        self.is_current = false;
        if write == Write::Age {
            // The file was removed or replaced, so its content is written again.
            self.content_at.get_or_insert(self.earliest.max(now));
            return Outcome::Same;
        }
        let pause = INTERVAL.saturating_mul(1 << self.failures.min(8)).min(MAX_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.earliest = now + pause;
        self.content_at = (!self.is_terminating).then_some(self.earliest);
        if self.error.as_ref() == Some(&error) {
            return Outcome::Same;
        }
        self.error = Some(error);
        Outcome::Failed
    }

    /// Returns why the last write failed.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns true if nothing is being written or waits.
    pub(super) fn is_idle(&self) -> bool {
        self.writing.is_none() && self.content_at.is_none() && !self.must_write_age
    }
}

#[cfg(test)]
mod tests;
