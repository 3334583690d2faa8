//! The state of each prober.

use std::cell::{Cell, RefCell};

use probe::log_line::LogLine;
use probe::{ProbePath, Reason};

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
        LogLine::of_change(path, self.last.replace(Some(reason)), reason)
    }
}

#[cfg(test)]
mod tests;
