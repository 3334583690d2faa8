//! Defines and updates Envoy's counters and gauges, and writes log lines within the limit of
//! [`Budget`].

use std::collections::BTreeMap;

use probe::{ProbePath, Reason};

use crate::abi::{self, Level, Metric};
use crate::config::Probe;
use crate::ledger::{self, Budget};

/// The metrics that this VM has defined, and the limit of its log lines.
#[derive(Default)]
pub(super) struct Metrics {
    /// The ids of the metrics by name. Defining a metric twice would allocate a second id, which
    /// Envoy never frees.
    ids: BTreeMap<String, u32>,
    budget: Budget,
}

impl Metrics {
    /// Records the result of a probe in metrics and log.
    pub(super) fn note(&mut self, probe: &Probe, reason: Reason) {
        let path = &probe.plan.path;
        if let Some(id) = self.metric(probe, Some(reason), path) {
            let _ = abi::increment(id);
        }
        // A reason that any client can cause with a malformed request is not a result of the probe.
        if reason.is_callers() {
            return;
        }
        if let Some(id) = self.metric(probe, None, path) {
            let _ = abi::record(id, u64::from(reason.is_success()));
        }
        if let Some(line) = probe.entry.note(path, reason) {
            let now = abi::now().unwrap_or(0);
            if let Some(suppressed) = self.budget.admit(now) {
                if suppressed > 0 {
                    abi::log(Level::Warn, &format!("{suppressed} lines about probes were suppressed"));
                }
                abi::log(if line.warn { Level::Warn } else { Level::Info }, &line.text);
            }
        }
    }

    /// Defines the metrics that a healthy prober needs before its first probe, and sets a new gauge
    /// to kubelet's initial result.
    pub(super) fn announce(&mut self, probe: &Probe) {
        let path = &probe.plan.path;
        self.metric(probe, Some(Reason::Ok), path);
        let known = self.ids.contains_key(&ledger::probe_success(path));
        if let Some(id) = self.metric(probe, None, path).filter(|_| !known) {
            let _ = abi::record(id, u64::from(ledger::initial_success(path.kind())));
        }
    }

    /// Returns the id of a prober's counter for `reason`, or of its gauge for `None`.
    fn metric(&mut self, probe: &Probe, reason: Option<Reason>, path: &ProbePath) -> Option<u32> {
        if let Some(id) = probe.entry.metric(reason) {
            return Some(id);
        }
        let id = match reason {
            Some(reason) => self.defined(Metric::Counter, &ledger::probes_total(path, reason)),
            None => self.defined(Metric::Gauge, &ledger::probe_success(path)),
        }?;
        probe.entry.keep_metric(reason, id);
        Some(id)
    }

    pub(super) fn count(&mut self, name: &str) {
        if let Some(id) = self.defined(Metric::Counter, name) {
            let _ = abi::increment(id);
        }
    }

    fn defined(&mut self, kind: Metric, name: &str) -> Option<u32> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        let id = abi::define_metric(kind, name).ok()?;
        self.ids.insert(name.into(), id);
        Some(id)
    }
}
