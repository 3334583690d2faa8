//! Metrics of probes that the agent answers, with the names and labels of those of the filter.

use probe::metrics::{Family as ProbeFamily, initial_success};
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
        let _: Counter = register(to, ProbeFamily::ConfigRejectedTotal, "Configurations that were rejected");
        Self {
            results: register(to, ProbeFamily::ProbesTotal, "Responses to probes, by their reason"),
            success: register(
                to,
                ProbeFamily::ProbeSuccess,
                "1 if the last result of the probe is a success",
            ),
            unknown: register(
                to,
                ProbeFamily::UnknownProbesTotal,
                "Requests for probes that are not declared",
            ),
        }
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

/// The registry adds `_total` to the names of counters.
fn register<M: Metric + Clone + Default>(to: &mut Registry, family: ProbeFamily, help: &str) -> M {
    let metric = M::default();
    to.register(family.name().trim_end_matches("_total"), help, metric.clone());
    metric
}
