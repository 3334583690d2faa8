//! What others see of the loop: the watched value, the diary, metrics, log lines. Nothing is decided here.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info};
use workload_health::{Flip, HealthState, Outcome, State, WorkloadProbe};

use super::HealthNow;
use super::diary::Diary;
use super::source::{Config, Source, shown};
use crate::metrics::Metrics;

/// Everything that the loop tells.
pub(super) struct Board {
    metrics: Arc<Metrics>,
    /// The failure that was told last.
    told: Option<String>,
    probe: Option<Arc<Value>>,
    now: watch::Sender<HealthNow>,
    diary: Arc<Mutex<Diary>>,
}

impl Board {
    /// Before anything is known. `at`: the agent's start.
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

    /// A file or a push was looked at.
    pub(super) fn looked(&self, config: Config, source: &Source) {
        self.metrics.health.config(config.word());
        self.diary().configured(source, self.probe.clone());
    }

    /// Another probe is in force, or none; its next round begins at `next`.
    pub(super) fn configured(&mut self, source: &Source, next: Instant, longest: Duration) {
        let probe = source.probe().map(Arc::as_ref);
        self.probe = probe.map(|probe| Arc::new(shown(probe)));
        match &self.probe {
            Some(probe) => info!(%probe, source = source.word(), "probe"),
            None => info!(source = source.word(), "no probe"),
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

    /// A probe of `kind` is over.
    pub(super) fn ended(&mut self, kind: &'static str, outcome: &Outcome, at: Instant, took: Duration) {
        self.metrics.health.probe(kind, outcome, took);
        self.diary().ended(outcome, at, took);
        self.now.send_modify(|known| known.last_probe = Some(at));
        self.tell(outcome);
    }

    /// A failure is told when its text is new; a probe alone is worth no line.
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

    /// The state may be another one, or its text.
    pub(super) fn state(&mut self, state: &HealthState, flip: Option<Flip>) {
        self.diary().counted(state.counters());
        if let Some(Flip { from, to, generation }) = flip {
            info!(%from, %to, reason = %state.reason(), message = state.message(), generation, "health");
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

/// The longest way to a first verdict, from the first probe.
fn verdict(probe: &WorkloadProbe) -> Duration {
    let most = probe.thresholds.success.max(probe.thresholds.failure).get();
    probe.period.saturating_add(probe.timeout).saturating_mul(most)
}
