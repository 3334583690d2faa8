//! What metrics and logs are told of the answers: counts, names, and lines only on change.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use probe::{ProbeKind, ProbePath, Reason};

/// Lines that a worker may log in a window.
const LINES: u32 = 10;
/// The window, in nanoseconds: a minute.
const WINDOW: u64 = 60_000_000_000;
/// Answers of one prober that may be in flight on one worker.
const IN_FLIGHT: u32 = 8;

/// Requests answered `unknown_probe`.
pub const UNKNOWN_TOTAL: &str = "app_health_unknown_total";
/// Refused configurations.
pub const CONFIG_REJECTED_TOTAL: &str = "app_health_config_rejected_total";

/// The counter of one prober's answers with one reason; Envoy's stats tags make labels of it.
pub fn probes_total(path: &ProbePath, reason: Reason) -> String {
    let (container, kind) = (path.container(), path.kind().word());
    format!("app_health_probes_total;container={container};kind={kind};reason={}", reason.word())
}

/// The gauge of one prober's last verdict, 1 or 0.
pub fn probe_success(path: &ProbePath) -> String {
    format!("app_health_probe_success;container={};kind={}", path.container(), path.kind().word())
}

/// What the gauge says before the first probe: kubelet's initial results (`pkg/kubelet/prober/worker.go`). A
/// container counts as alive, but not as ready or started; a hook that did not run has not failed.
pub fn initial_success(kind: ProbeKind) -> bool {
    !matches!(kind, ProbeKind::Readyz | ProbeKind::Startupz)
}

/// What one worker knows of one prober.
#[derive(Debug, Default)]
pub struct Entry {
    in_flight: Cell<u32>,
    last: Cell<Option<Reason>>,
    metrics: RefCell<BTreeMap<Option<Reason>, u32>>,
}

impl Entry {
    /// Takes a place for one more probe; `false` when all are taken.
    pub fn enter(&self) -> bool {
        let free = self.in_flight.get() < IN_FLIGHT;
        if free {
            self.in_flight.set(self.in_flight.get().saturating_add(1));
        }
        free
    }

    /// Gives the place back.
    pub fn leave(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
    }

    /// The id of the counter for a reason, or of the gauge, once it is defined.
    pub fn metric(&self, reason: Option<Reason>) -> Option<u32> {
        self.metrics.try_borrow().ok()?.get(&reason).copied()
    }

    /// Keeps the id of a metric that was defined.
    pub fn keep_metric(&self, reason: Option<Reason>, id: u32) {
        if let Ok(mut metrics) = self.metrics.try_borrow_mut() {
            metrics.insert(reason, id);
        }
    }

    /// Notes an answer; the line to log, if the reason is another than before.
    pub fn note(&self, path: &ProbePath, reason: Reason) -> Option<Line> {
        let before = self.last.replace(Some(reason));
        let name = format!("probe {}/{}", path.container(), path.kind().word());
        let text = match before {
            Some(before) if before != reason => format!("{name}: {}, was {}", reason.word(), before.word()),
            None if !reason.is_success() => format!("{name}: {}", reason.word()),
            _ => return None,
        };
        Some(Line { warn: !reason.is_success(), text })
    }
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Into failure: a warning; out of it: information.
    pub warn: bool,
    /// Names of the table and our own words; nothing that a caller or the application sent.
    pub text: String,
}

/// How many lines may still be logged.
#[derive(Debug, Default)]
pub struct Budget {
    since: Option<u64>,
    lines: u32,
    suppressed: u64,
}

impl Budget {
    /// Whether a line may be logged at `now` (nanoseconds of any clock): `Some` with the number that was
    /// suppressed since the last one, or `None`.
    pub fn admit(&mut self, now: u64) -> Option<u64> {
        let current = self.since.is_some_and(|since| now >= since && now.saturating_sub(since) < WINDOW);
        if !current {
            self.since = Some(now);
            self.lines = 0;
        }
        if self.lines >= LINES {
            self.suppressed = self.suppressed.saturating_add(1);
            return None;
        }
        self.lines = self.lines.saturating_add(1);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests;
