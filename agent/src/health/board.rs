//! Publishes what the probe loop does: the watched [`HealthNow`], the probe history, metrics and
//! log lines. It makes no decisions.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info};
use workload_health::{HealthState, Outcome, State, Transition, WorkloadProbe};

use super::HealthNow;
use super::diary::Diary;
use super::source::{Config, Source, shown};
use crate::metrics::Metrics;

pub(super) struct Board {
    metrics: Arc<Metrics>,
    /// Text of the failure that was logged last.
    told: Option<String>,
    probe: Option<Arc<Value>>,
    now: watch::Sender<HealthNow>,
    diary: Arc<Mutex<Diary>>,
}

impl Board {
    /// Publishes the initial state. `at` is the agent's start.
    pub(super) fn new(state: &HealthState, at: Instant, metrics: Arc<Metrics>) -> Self {
        let now = HealthNow {
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
        let (now, diary) = (watch::Sender::new(now), Arc::new(Mutex::new(Diary::new())));
        Self { metrics, told: None, probe: None, now, diary }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<HealthNow> {
        self.now.subscribe()
    }

    pub(super) fn shared_diary(&self) -> Arc<Mutex<Diary>> {
        self.diary.clone()
    }

    /// Records that a file or a pushed probe was evaluated.
    pub(super) fn looked(&self, config: Config, source: &Source) {
        self.metrics.health.config(config.word());
        self.diary().configured(source, self.probe.clone());
    }

    /// Records that the probe in force has changed or was removed; the next probe begins at `next`.
    pub(super) fn configured(&mut self, source: &Source, next: Instant, longest: Duration) {
        let probe = source.probe().map(Arc::as_ref);
        self.probe = probe.map(|probe| Arc::new(shown(probe)));
        match &self.probe {
            Some(probe) => info!(%probe, source = source.word(), "probe configured"),
            None => info!(source = source.word(), "no probe configured"),
        }
        let interval = probe.map(|probe| probe.period.saturating_add(probe.timeout));
        let due = probe.map(|probe| next + verdict(probe).min(longest));
        self.now.send_modify(|known| {
            known.probe.clone_from(&self.probe);
            known.interval = interval;
            known.verdict_due = due.filter(|_| known.generation == 0);
        });
        self.diary().configured(source, self.probe.clone());
    }

    /// Records the result of a probe of the given kind.
    pub(super) fn ended(&mut self, kind: &'static str, outcome: &Outcome, at: Instant, took: Duration) {
        self.metrics.health.probe(kind, outcome, took);
        self.diary().ended(outcome, at, took);
        self.now.send_modify(|known| known.last_probe = Some(at));
        self.tell(outcome);
    }

    /// Logs a failure at info level if its text is new, and otherwise at debug level.
    fn tell(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Healthy => debug!("probe succeeded"),
            Outcome::Unhealthy(unhealthy) if self.told.as_deref() == Some(unhealthy.text()) => {
                debug!(reason = %unhealthy.reason(), message = unhealthy.text(), "probe failed");
            }
            Outcome::Unhealthy(unhealthy) => {
                info!(reason = %unhealthy.reason(), message = unhealthy.text(), "probe failed");
                self.told = Some(unhealthy.text().to_owned());
            }
        }
    }

    /// Publishes the state, and the transition if there was one.
    pub(super) fn state(&mut self, state: &HealthState, flip: Option<Transition>) {
        self.diary().counted(state.counters());
        if let Some(Transition { from, to, generation }) = flip {
            info!(%from, %to, reason = %state.reason(), message = state.message(), generation, "health state changed");
            self.metrics.health.transition(to);
            if to == State::Healthy {
                self.told = None;
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

    fn diary(&self) -> MutexGuard<'_, Diary> {
        self.diary.lock().expect("nothing panics while it holds this lock")
    }
}

/// Returns the longest time from the start of the first probe to the first verdict.
fn verdict(probe: &WorkloadProbe) -> Duration {
    let most = probe.thresholds.success.max(probe.thresholds.failure).get();
    probe.period.saturating_add(probe.timeout).saturating_mul(most)
}
