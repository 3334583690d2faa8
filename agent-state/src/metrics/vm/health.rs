//! Metrics of the workload's health checks. Every label has a fixed set of values.

use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use workload_health::{HealthReason, Outcome, State};

use crate::metrics::{Counters, Gauges, Histograms, register};

/// Upper bounds of the histogram buckets for probes, in seconds.
const PROBE_SECONDS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

#[derive(Debug)]
pub struct HealthMetrics {
    probes: Counters<3>,
    duration: Histograms,
    state: Gauges<1>,
    transitions: Counters<1>,
    config: Counters<1>,
}

impl HealthMetrics {
    pub(super) fn new(to: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(PROBE_SECONDS);
        let duration = Family::new_with_constructor(histogram);
        to.register("vm_probe_duration_seconds", "Duration of the probes of the workload", duration.clone());
        Self {
            probes: register(to, "vm_probe", "Probes of the workload"),
            duration,
            state: register(to, "vm_health_state", "1 for the current health state of the workload"),
            transitions: register(to, "vm_health_transitions", "Changes of the health state of the workload"),
            config: register(to, "probe_config", "Probe configurations that were received, by result"),
        }
    }

    pub fn probe(&self, kind: &'static str, outcome: &Outcome, took: Duration) {
        let (word, reason) = match outcome {
            Outcome::Healthy => ("healthy", HealthReason::ProbeSucceeded),
            Outcome::Unhealthy(unhealthy) => ("unhealthy", unhealthy.reason()),
        };
        let labels =
            [("kind", kind.to_owned()), ("outcome", word.to_owned()), ("reason", reason.word().to_owned())];
        self.probes.get_or_create(&labels).inc();
        self.duration.get_or_create(&[("kind", kind.to_owned())]).observe(took.as_secs_f64());
    }

    pub fn state(&self, now: State) {
        for state in State::ALL {
            let gauge = self.state.get_or_create_owned(&[("state", state.word().to_owned())]);
            gauge.set((state == now).into());
        }
    }

    pub fn transition(&self, to: State) {
        self.state(to);
        self.transitions.get_or_create(&[("to", to.word().to_owned())]).inc();
    }

    /// Records a received probe configuration; the result is `applied`, `unchanged`, `ignored` or
    /// `refused`.
    pub fn config(&self, result: &'static str) {
        self.config.get_or_create(&[("result", result.to_owned())]).inc();
    }
}
