//! Publishes what the probe loop does: the watched [`HealthSnapshot`], metrics and log lines. It makes
//! no decisions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info};
use workload_health::{HealthState, Outcome, State, Transition, WorkloadProbe};

use super::history::History;
use super::source::{ApplyResult, ProbeSource, redacted};
use super::{HealthSnapshot, HealthStatus};
use agent_state::metrics::Metrics;

pub(super) struct Publisher {
    metrics: Arc<Metrics>,
    /// The agent's start, from which the times of a snapshot count.
    started: Instant,
    /// False if changes of the health are not logged.
    is_logged: bool,
    /// Text of the failure that was logged last.
    last_logged_failure: Option<String>,
    snapshots: watch::Sender<HealthSnapshot>,
}

impl Publisher {
    /// Publishes the initial state.
    pub(super) fn new(state: &HealthState, started: Instant, metrics: Arc<Metrics>, is_logged: bool) -> Self {
        metrics.vm.health.state(state.verdict().state);
        let status = HealthStatus {
            verdict: state.verdict().clone(),
            since: Duration::ZERO,
            last_probe: None,
            interval: None,
            verdict_due: None,
        };
        let snapshot = HealthSnapshot { status, probe: None, history: History::default() };
        Self {
            metrics,
            started,
            is_logged,
            last_logged_failure: None,
            snapshots: watch::Sender::new(snapshot),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<HealthSnapshot> {
        self.snapshots.subscribe()
    }

    /// Records that a file or a pushed probe was evaluated.
    pub(super) fn config_evaluated(&self, result: ApplyResult, source: &ProbeSource) {
        self.metrics.vm.health.config(result.as_str());
        self.snapshots.send_if_modified(|snapshot| {
            snapshot.history.set_source(source);
            false
        });
    }

    /// Records that the probe in force has changed or was removed; the next probe begins at `next`.
    pub(super) fn configured(&self, source: &ProbeSource, next: Instant, longest: Duration) {
        let probe = source.probe().map(Arc::as_ref);
        let shown = probe.map(redacted);
        match &shown {
            Some(probe) => info!(%probe, source = source.as_str(), "probe configured"),
            None if self.is_logged => info!(source = source.as_str(), "no probe configured"),
            None => {}
        }
        let next = next.saturating_duration_since(self.started);
        self.snapshots.send_modify(|snapshot| {
            let HealthSnapshot { status, probe: published, history } = snapshot;
            *published = shown;
            status.interval = probe.map(|probe| probe.period.saturating_add(probe.timeout));
            let due = probe.map(|probe| next + longest_verdict(probe).min(longest));
            status.verdict_due = due.filter(|_| status.verdict.generation == 0);
            history.set_source(source);
        });
    }

    /// Records the result of a probe of the given kind.
    pub(super) fn probe_ended(&mut self, kind: &'static str, outcome: &Outcome, at: Instant, took: Duration) {
        self.metrics.vm.health.probe(kind, outcome, took);
        let at = at.saturating_duration_since(self.started);
        self.snapshots.send_modify(|snapshot| {
            snapshot.history.probe_ended(outcome, at, took);
            snapshot.status.last_probe = Some(at);
        });
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
    pub(super) fn publish_state(&mut self, state: &HealthState, flip: Option<Transition>) {
        let verdict = state.verdict();
        if let Some(Transition { from, to, generation }) = flip {
            if self.is_logged {
                info!(%from, %to, reason = %verdict.reason, message = verdict.message, generation, "health state changed");
            }
            self.metrics.vm.health.transition(to);
            if to == State::Healthy {
                self.last_logged_failure = None;
            }
        }
        let now = self.started.elapsed();
        self.snapshots.send_if_modified(|snapshot| {
            let HealthSnapshot { status, history, .. } = snapshot;
            history.set_counters(state.counters());
            let is_same = status.verdict == *verdict;
            if status.verdict.state != verdict.state {
                status.since = now;
            }
            status.verdict.clone_from(verdict);
            status.verdict_due = status.verdict_due.filter(|_| status.verdict.generation == 0);
            !is_same
        });
    }
}

/// Returns the longest time from the start of the first probe to the first verdict.
fn longest_verdict(probe: &WorkloadProbe) -> Duration {
    let most = probe.thresholds.success.max(probe.thresholds.failure).get();
    probe.period.saturating_add(probe.timeout).saturating_mul(most)
}
