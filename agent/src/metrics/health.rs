//! What is counted of probes. Labels are closed sets: kinds, reasons, states.

use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use workload_health::{HealthReason, Outcome, State};

use super::{Counters, Gauges, Histograms};

/// Upper bounds, in seconds.
const PROBE_SECONDS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Of a workload that the agent probes.
#[derive(Debug)]
pub struct HealthMetrics {
    probes: Counters<3>,
    duration: Histograms,
    state: Gauges<1>,
    transitions: Counters<1>,
    config: Counters<1>,
}

impl HealthMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register("vm_probe", "Probes of the workload", self.probes.clone());
        to.register("vm_probe_duration_seconds", "How long they took", self.duration.clone());
        to.register("vm_health_state", "1 for the state of the workload", self.state.clone());
        to.register("vm_health_transitions", "Changes of the state", self.transitions.clone());
        to.register(
            "probe_config",
            "Files and pushes of a probe, by what became of them",
            self.config.clone(),
        );
    }

    /// A probe is over.
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

    /// The state of now.
    pub fn state(&self, now: State) {
        for state in State::ALL {
            let gauge = self.state.get_or_create_owned(&[("state", state.word().to_owned())]);
            gauge.set((state == now).into());
        }
    }

    /// The state has changed.
    pub fn transition(&self, to: State) {
        self.state(to);
        self.transitions.get_or_create(&[("to", to.word().to_owned())]).inc();
    }

    /// A file or a push came to this: `applied`, `unchanged`, `ignored`, `refused`.
    pub fn config(&self, result: &'static str) {
        self.config.get_or_create(&[("result", result.to_owned())]).inc();
    }
}

impl Default for HealthMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(PROBE_SECONDS);
        Self {
            probes: Family::default(),
            duration: Family::new_with_constructor(histogram),
            state: Family::default(),
            transitions: Family::default(),
            config: Family::default(),
        }
    }
}
