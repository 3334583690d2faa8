//! Metric names, the state of each prober, and the decision which results are logged.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use probe::{ProbeKind, ProbePath, Reason};

/// The maximum number of log lines of one worker in [`WINDOW_NS`].
const MAX_LINES: u32 = 10;
/// One minute, in nanoseconds.
const WINDOW_NS: u64 = 60_000_000_000;
/// The maximum number of probes in flight for one prober on one worker.
const MAX_IN_FLIGHT: u32 = 8;

/// Counts the requests that were answered with `unknown_probe`.
pub const UNKNOWN_PROBES_TOTAL: &str = "app_health_unknown_probes_total";
/// Counts the plugin configurations that were rejected.
pub const CONFIG_REJECTED_TOTAL: &str = "app_health_config_rejected_total";

/// Returns the name of the counter of one prober and one reason. Envoy's stats tags turn
/// `;name=value` into labels.
pub fn probes_total(path: &ProbePath, reason: Reason) -> String {
    let (container, kind) = (path.container(), path.kind().word());
    format!("app_health_probes_total;container={container};kind={kind};reason={}", reason.word())
}

/// Returns the name of the gauge of one prober's last result: 1 for success, 0 for failure.
pub fn probe_success(path: &ProbePath) -> String {
    format!("app_health_probe_success;container={};kind={}", path.container(), path.kind().word())
}

/// Returns the value of the gauge before the first probe, which is kubelet's initial result
/// (`pkg/kubelet/prober/worker.go`): a container counts as alive, but not as ready or started. A
/// hook that has not run yet has not failed.
pub fn initial_success(kind: ProbeKind) -> bool {
    !matches!(kind, ProbeKind::Readyz | ProbeKind::Startupz)
}

/// The state of one prober on one worker.
#[derive(Debug, Default)]
pub struct ProberStats {
    in_flight: Cell<u32>,
    last: Cell<Option<Reason>>,
    metrics: RefCell<BTreeMap<Option<Reason>, u32>>,
}

impl ProberStats {
    /// Takes a slot for one more probe in flight. Returns `false` if all slots are taken.
    pub fn acquire(&self) -> bool {
        let free = self.in_flight.get() < MAX_IN_FLIGHT;
        if free {
            self.in_flight.set(self.in_flight.get().saturating_add(1));
        }
        free
    }

    /// Frees the slot of a probe that has ended.
    pub fn release(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
    }

    /// Returns the metric id of the counter for a reason, or of the gauge for `None`, if it is
    /// defined.
    pub fn metric(&self, reason: Option<Reason>) -> Option<u32> {
        self.metrics.try_borrow().ok()?.get(&reason).copied()
    }

    pub fn set_metric(&self, reason: Option<Reason>, id: u32) {
        if let Ok(mut metrics) = self.metrics.try_borrow_mut() {
            metrics.insert(reason, id);
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
