//! Metrics of probes that the agent answers, with the names and labels of those of the filter.

use probe::metrics::initial_success;
use probe::{ProbePath, Reason};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

type Labels<const N: usize> = [(&'static str, String); N];

#[derive(Debug)]
pub(crate) struct ProbeMetrics {
    results: Family<Labels<3>, Counter>,
    success: Family<Labels<2>, Gauge>,
    unknown: Counter,
}

impl ProbeMetrics {
    /// Creates the metrics, and registers them.
    pub(crate) fn registered(to: &mut Registry) -> Self {
        let metrics = Self {
            results: register(to, "probes", "Responses to probes, by their reason"),
            success: register(to, "probe_success", "1 if the last result of the probe is a success"),
            unknown: register(to, "unknown_probes", "Requests for probes that are not declared"),
        };
        let _: Counter = register(to, "config_rejected", "Configurations that were rejected");
        metrics
    }

    /// Sets the metrics of a probe that has not run yet.
    pub(crate) fn declare(&self, path: &ProbePath) {
        drop(self.results.get_or_create(&result_labels(path, Reason::Ok)));
        self.set(path, initial_success(path.kind()));
    }

    pub(crate) fn count(&self, path: &ProbePath, reason: Reason) {
        self.results.get_or_create(&result_labels(path, reason)).inc();
    }

    pub(crate) fn set(&self, path: &ProbePath, is_success: bool) {
        self.success.get_or_create(&labels(path)).set(is_success.into());
    }

    pub(crate) fn unknown_probe(&self) {
        self.unknown.inc();
    }
}

fn labels(path: &ProbePath) -> [(&'static str, String); 2] {
    [("container", path.container().to_owned()), ("kind", path.kind().word().to_owned())]
}

fn result_labels(path: &ProbePath, reason: Reason) -> [(&'static str, String); 3] {
    let [container, kind] = labels(path);
    [container, kind, ("reason", reason.word().to_owned())]
}

fn register<M: Metric + Clone + Default>(to: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    to.register(name, help, metric.clone());
    metric
}
