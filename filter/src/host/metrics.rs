//! What metrics and log are told: counters and gauges of Envoy, by name, and lines as far as the budget goes.

use std::collections::BTreeMap;

use probe::{ProbePath, Reason};

use crate::abi::{self, Level, Metric};
use crate::config::Probe;
use crate::ledger::{self, Budget};

/// The metrics that this VM has defined, and the lines that it may still log.
#[derive(Default)]
pub(super) struct Metrics {
    /// Ids by name: a metric that is defined again would get another id, which Envoy never forgets.
    ids: BTreeMap<String, u32>,
    budget: Budget,
}

impl Metrics {
    /// Tells metrics and log.
    pub(super) fn note(&mut self, probe: &Probe, reason: Reason) {
        let path = &probe.plan.path;
        if let Some(id) = self.metric(probe, Some(reason), path) {
            let _ = abi::increment(id);
        }
        // What anybody could cause by a wrong request is no verdict.
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

    /// Defines what a healthy prober needs before its first probe, and gives a new gauge kubelet's initial result.
    pub(super) fn announce(&mut self, probe: &Probe) {
        let path = &probe.plan.path;
        self.metric(probe, Some(Reason::Ok), path);
        let known = self.ids.contains_key(&ledger::probe_success(path));
        if let Some(id) = self.metric(probe, None, path).filter(|_| !known) {
            let _ = abi::record(id, u64::from(ledger::initial_success(path.kind())));
        }
    }

    /// The id of a prober's counter for a reason, or of its gauge.
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
