//! Publishes what the probe loop does: the watched [`HealthSnapshot`], the probe history, metrics and
//! log lines. It makes no decisions.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info};
use workload_health::{Flip, HealthState, Outcome, State, WorkloadProbe};

use super::HealthSnapshot;
use super::history::History;
use super::source::{ApplyResult, ProbeSource, redacted};
use crate::metrics::Metrics;

pub(super) struct Publisher {
    metrics: Arc<Metrics>,
    /// Text of the failure that was logged last.
    last_logged_failure: Option<String>,
    probe: Option<Arc<Value>>,
    now: watch::Sender<HealthSnapshot>,
    history: Arc<Mutex<History>>,
}

impl Publisher {
    /// Publishes the initial state. `at` is the agent's start.
    pub(super) fn new(state: &HealthState, at: Instant, metrics: Arc<Metrics>) -> Self {
        let now = HealthSnapshot {
            state: state.state(),
            reason: state.reason(),
            message: state.message().to_owned(),
            generation: state.generation(),
            since: at,
            last_probe: None,
            probe: None,
            interval: None,
            verdict_due: None,
        };
        metrics.health.state(state.state());
        let (now, history) = (watch::Sender::new(now), Arc::new(Mutex::new(History::new())));
        Self { metrics, last_logged_failure: None, probe: None, now, history }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<HealthSnapshot> {
        self.now.subscribe()
    }

    pub(super) fn shared_history(&self) -> Arc<Mutex<History>> {
        self.history.clone()
    }

    /// Records that a file or a pushed probe was evaluated.
    pub(super) fn config_evaluated(&self, config: ApplyResult, source: &ProbeSource) {
        self.metrics.health.config(config.as_str());
        self.history().configured(source, self.probe.clone());
    }

    /// Records that the probe in force has changed or was removed; the next probe begins at `next`.
    pub(super) fn configured(&mut self, source: &ProbeSource, next: Instant, longest: Duration) {
        let probe = source.probe().map(Arc::as_ref);
        self.probe = probe.map(|probe| Arc::new(redacted(probe)));
        match &self.probe {
            Some(probe) => info!(%probe, source = source.as_str(), "probe configured"),
            None => info!(source = source.as_str(), "no probe configured"),
        }
        let interval = probe.map(|probe| probe.period.saturating_add(probe.timeout));
        let due = probe.map(|probe| next + longest_verdict(probe).min(longest));
        self.now.send_modify(|known| {
            known.probe.clone_from(&self.probe);
            known.interval = interval;
            known.verdict_due = due.filter(|_| known.generation == 0);
        });
        self.history().configured(source, self.probe.clone());
    }

    /// Records the result of a probe of the given kind.
    pub(super) fn probe_ended(&mut self, kind: &'static str, outcome: &Outcome, at: Instant, took: Duration) {
        self.metrics.health.probe(kind, outcome, took);
        self.history().probe_ended(outcome, at, took);
        self.now.send_modify(|known| known.last_probe = Some(at));
        self.log_outcome(outcome);
    }

    /// Logs a failure at info level if its text is new, and otherwise at debug level.
    fn log_outcome(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Healthy => debug!("probe succeeded"),
            Outcome::Unhealthy(unhealthy)
                if self.last_logged_failure.as_deref() == Some(unhealthy.text()) =>
            {
                debug!(reason = %unhealthy.reason(), message = unhealthy.text(), "probe failed");
            }
            Outcome::Unhealthy(unhealthy) => {
                info!(reason = %unhealthy.reason(), message = unhealthy.text(), "probe failed");
                self.last_logged_failure = Some(unhealthy.text().to_owned());
            }
        }
    }

    /// Publishes the state, and the transition if there was one.
    pub(super) fn publish_state(&mut self, state: &HealthState, flip: Option<Flip>) {
        self.history().set_counters(state.counters());
        if let Some(Flip { from, to, generation }) = flip {
            info!(%from, %to, reason = %state.reason(), message = state.message(), generation, "health state changed");
            self.metrics.health.transition(to);
            if to == State::Healthy {
                self.last_logged_failure = None;
            }
        }
        self.now.send_if_modified(|known| {
            let is_same = known.reason == state.reason()
                && known.message == state.message()
                && known.generation == state.generation();
            if known.state != state.state() {
                known.since = Instant::now();
            }
            (known.state, known.reason) = (state.state(), state.reason());
            state.message().clone_into(&mut known.message);
            known.generation = state.generation();
            known.verdict_due = known.verdict_due.filter(|_| known.generation == 0);
            !is_same
        });
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().expect("nothing panics while it holds this lock")
    }
}

/// Returns the longest time from the start of the first probe to the first verdict.
fn longest_verdict(probe: &WorkloadProbe) -> Duration {
    let most = probe.thresholds.success.max(probe.thresholds.failure).get();
    probe.period.saturating_add(probe.timeout).saturating_mul(most)
}
