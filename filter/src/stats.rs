//! The state of each prober, and the decision which results are logged.

use std::cell::{Cell, RefCell};

use probe::{ProbePath, Reason};

/// The maximum number of log lines of one worker in [`WINDOW_NS`].
const MAX_LINES: u32 = 10;
/// One minute, in nanoseconds.
const WINDOW_NS: u64 = 60_000_000_000;

/// The state of one prober on one worker.
#[derive(Debug, Default)]
pub struct ProberStats {
    last: Cell<Option<Reason>>,
    /// The ids of the counters by reason, and of the gauge. A prober has few reasons.
    metrics: RefCell<Vec<(Option<Reason>, usize)>>,
}

impl ProberStats {
    /// Returns the metric id of the counter for a reason, or of the gauge for `None`, if it is
    /// defined.
    pub fn metric(&self, reason: Option<Reason>) -> Option<usize> {
        let metrics = self.metrics.try_borrow().ok()?;
        metrics.iter().find(|(found, _)| *found == reason).map(|(_, id)| *id)
    }

    /// Remembers an id that [`ProberStats::metric`] did not find.
    pub fn set_metric(&self, reason: Option<Reason>, id: usize) {
        if let Ok(mut metrics) = self.metrics.try_borrow_mut() {
            metrics.push((reason, id));
        }
    }

    /// Records a result, and returns the line to log if the reason has changed.
    pub fn record(&self, path: &ProbePath, reason: Reason) -> Option<LogLine> {
        let before = self.last.replace(Some(reason));
        let name = format!("probe {}/{}", path.container(), path.kind().word());
        let text = match before {
            Some(before) if before != reason => format!("{name}: {}, was {}", reason.word(), before.word()),
            None if !reason.is_success() => format!("{name}: {}", reason.word()),
            _ => return None,
        };
        Some(LogLine { warn: !reason.is_success(), text })
    }
}

/// A log line about a changed result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// True for a failure, which is logged as a warning; false for a success, which is logged as
    /// information.
    pub warn: bool,
    /// Consists of names from the configuration and of the reason words; contains nothing that a
    /// client or the application sent.
    pub text: String,
}

/// A rate limit for log lines.
#[derive(Debug, Default)]
pub struct LogLimiter {
    since: Option<u64>,
    lines: u32,
    suppressed: u64,
}

impl LogLimiter {
    /// Returns `None` if no line may be logged at `now` (in nanoseconds of any clock). Otherwise
    /// returns the number of lines suppressed since the last logged one.
    pub fn check(&mut self, now: u64) -> Option<u64> {
        let current = self.since.is_some_and(|since| now >= since && now.saturating_sub(since) < WINDOW_NS);
        if !current {
            self.since = Some(now);
            self.lines = 0;
        }
        if self.lines >= MAX_LINES {
            self.suppressed = self.suppressed.saturating_add(1);
            return None;
        }
        self.lines = self.lines.saturating_add(1);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests;
