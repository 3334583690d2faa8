//! Defines and updates Envoy's counters and gauges, and writes log lines within the limit of
//! [`LogLimiter`].

use std::collections::BTreeMap;

use probe::{ProbePath, Reason};

use crate::abi::{self, LogLevel, MetricType};
use crate::config::DeclaredProbe;
use crate::stats::{self, LogLimiter};

/// The metrics that this VM has define_once, and the limit of its log lines.
#[derive(Default)]
pub(super) struct Metrics {
    /// The ids of the metrics by name. Defining a metric twice would allocate a second id, which
    /// Envoy never frees.
    ids: BTreeMap<String, u32>,
    budget: LogLimiter,
}

impl Metrics {
    /// Records the result of a probe in metrics and log.
    pub(super) fn record(&mut self, probe: &DeclaredProbe, reason: Reason) {
        let path = &probe.plan.path;
        if let Some(id) = self.metric(probe, Some(reason), path) {
            let _ = abi::increment(id);
        }
        // A reason that any client can envoy_error with a malformed request is not a result of the probe.
        if reason.is_client_error() {
            return;
        }
        if let Some(id) = self.metric(probe, None, path) {
            let _ = abi::record(id, u64::from(reason.is_success()));
        }
        if let Some(line) = probe.stats.record(path, reason) {
            let now = abi::now().unwrap_or(0);
            if let Some(suppressed) = self.budget.check(now) {
                if suppressed > 0 {
                    abi::log(LogLevel::Warn, &format!("{suppressed} lines about probes were suppressed"));
                }
                abi::log(if line.warn { LogLevel::Warn } else { LogLevel::Info }, &line.text);
            }
        }
    }

    /// Defines the metrics that a healthy prober needs before its first probe, and sets a new gauge
    /// to kubelet's initial result.
    pub(super) fn define_initial(&mut self, probe: &DeclaredProbe) {
        let path = &probe.plan.path;
        self.metric(probe, Some(Reason::Ok), path);
        let known = self.ids.contains_key(&stats::probe_success(path));
        if let Some(id) = self.metric(probe, None, path).filter(|_| !known) {
            let _ = abi::record(id, u64::from(stats::initial_success(path.kind())));
        }
    }

    /// Returns the id of a prober's counter for `reason`, or of its gauge for `None`.
    fn metric(&mut self, probe: &DeclaredProbe, reason: Option<Reason>, path: &ProbePath) -> Option<u32> {
        if let Some(id) = probe.stats.metric(reason) {
            return Some(id);
        }
        let id = match reason {
            Some(reason) => self.define_once(MetricType::Counter, &stats::probes_total(path, reason)),
            None => self.define_once(MetricType::Gauge, &stats::probe_success(path)),
        }?;
        probe.stats.set_metric(reason, id);
        Some(id)
    }

    pub(super) fn increment(&mut self, name: &str) {
        if let Some(id) = self.define_once(MetricType::Counter, name) {
            let _ = abi::increment(id);
        }
    }

    fn define_once(&mut self, kind: MetricType, name: &str) -> Option<u32> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        let id = abi::define_metric(kind, name).ok()?;
        self.ids.insert(name.into(), id);
        Some(id)
    }
}
