//! The loop: when a probe begins, what follows from its end, and what changes it. One probe at a time, by the monotonic clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use probe::{End, Flip, HealthReason, HealthState, Outcome, Thresholds, WorkloadProbe};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info};

use super::diary::Diary;
use super::source::{Config, Source, shown};
use super::{HealthNow, Push};
use crate::metrics::Metrics;
use crate::readiness::{Phase, Snapshot};

/// Between two looks at the file.
const POLL: Duration = Duration::from_secs(5);
/// No period, no delay is longer: a century, so that adding one to an instant is safe.
const LONG: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The loop's state. `A` performs a probe, `R` says why Envoy is not ready, if it is not.
pub(super) struct Rounds<A, R> {
    ask: A,
    not_ready: R,
    source: Source,
    pushes: mpsc::Receiver<Push>,
    phases: watch::Receiver<Arc<Snapshot>>,
    metrics: Arc<Metrics>,
    state: HealthState,
    /// The agent's start, from which the initial delay counts.
    started: Instant,
    /// When the next probe may begin.
    next: Instant,
    next_look: Instant,
    /// The probe that goes on, if one does.
    running: JoinSet<Outcome>,
    began: Instant,
    /// The failure that was told last.
    told: Option<String>,
    probe: Option<Arc<Value>>,
    now: watch::Sender<HealthNow>,
    diary: Arc<Mutex<Diary>>,
}

/// The loop, what it publishes, and what it keeps for people.
pub(super) type Made<A, R> = (Rounds<A, R>, watch::Receiver<HealthNow>, Arc<Mutex<Diary>>);

impl<A, R, F> Rounds<A, R>
where
    A: Fn(Arc<WorkloadProbe>) -> F,
    F: Future<Output = Outcome> + Send + 'static,
    R: Fn() -> Option<String>,
{
    pub(super) fn new(
        ask: A,
        not_ready: R,
        source: Source,
        pushes: mpsc::Receiver<Push>,
        phases: watch::Receiver<Arc<Snapshot>>,
        metrics: Arc<Metrics>,
    ) -> Made<A, R> {
        let started = Instant::now();
        let state = HealthState::new(source.probe().map(|probe| probe.thresholds));
        let first = HealthNow {
            state: state.state(),
            reason: state.reason(),
            message: state.message().to_owned(),
            generation: 0,
            since: started,
            last_probe: None,
            probe: None,
            interval: None,
            verdict_due: None,
        };
        let (now, subscriber) = watch::channel(first);
        let diary = Arc::new(Mutex::new(Diary::new()));
        let mut rounds = Self {
            ask,
            not_ready,
            source,
            pushes,
            phases,
            metrics,
            state,
            started,
            next: started,
            next_look: started + POLL,
            running: JoinSet::new(),
            began: started,
            told: None,
            probe: None,
            now,
            diary: diary.clone(),
        };
        rounds.metrics.health.state(rounds.state.state());
        rounds.configured();
        (rounds, subscriber, diary)
    }

    /// Never returns by itself.
    pub(super) async fn run(mut self) {
        loop {
            let due = self.due();
            let (look, has_file) = (self.next_look, self.source.has_file());
            tokio::select! {
                biased;
                end = ended(&mut self.phases, self.state.reason()) => self.end(end).await,
                Some(push) = self.pushes.recv() => self.pushed(push).await,
                Some(joined) = self.running.join_next() => {
                    let lost = |error: tokio::task::JoinError| {
                        let how = if error.is_panic() { "the prober panicked" } else { "the probe was lost" };
                        Outcome::unhealthy(HealthReason::CannotRun, how)
                    };
                    self.observe(joined.unwrap_or_else(lost));
                }
                () = sleep_until(look), if has_file => self.look().await,
                () = until(due) => self.begin(),
            }
        }
    }

    /// When the next probe begins; `None`: not before something else happens.
    fn due(&self) -> Option<Instant> {
        let may = self.source.probe().is_some() && self.running.is_empty() && !self.state.is_final();
        may.then_some(self.next)
    }

    fn begin(&mut self) {
        let Some(probe) = self.source.probe().cloned() else { return };
        self.began = Instant::now();
        if let Some(reasons) = (self.not_ready)() {
            let text = format!("Envoy is not ready: {reasons}");
            self.observe(Outcome::unhealthy(HealthReason::EnvoyNotReady, &text));
            return;
        }
        // A task of its own, so that a panic is that task's end alone.
        self.running.spawn((self.ask)(probe));
    }

    fn observe(&mut self, outcome: Outcome) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.began);
        let Some(probe) = self.source.probe().cloned() else { return };
        self.next = now.max(self.began + probe.period.min(LONG));
        self.metrics.health.probe(probe.handler.kind(), &outcome, took);
        self.diary().ended(&outcome, now, took);
        self.tell(&outcome);
        let flip = self.state.observe(outcome);
        self.now.send_modify(|known| known.last_probe = Some(now));
        self.flipped(flip);
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

    /// Publishes the state, and tells of a flip.
    fn flipped(&mut self, flip: Option<Flip>) {
        let state = &self.state;
        self.diary().counted(state.counters());
        if let Some(flip) = flip {
            let (from, to, generation) = (flip.from, flip.to, flip.generation);
            info!(%from, %to, reason = %state.reason(), message = state.message(), generation, "health");
            self.metrics.health.transition(to);
        }
        self.now.send_if_modified(|known| {
            let is_same = known.reason == state.reason()
                && known.message == state.message()
                && known.generation == state.generation();
            if known.state != state.state() {
                known.since = Instant::now();
            }
            known.state = state.state();
            known.reason = state.reason();
            state.message().clone_into(&mut known.message);
            known.generation = state.generation();
            if known.generation > 0 {
                known.verdict_due = None;
            }
            !is_same
        });
        if flip.is_some_and(|flip| flip.to == probe::State::Healthy) {
            self.told = None;
        }
    }

    async fn pushed(&mut self, push: Push) {
        let (config, answer) = self.source.push(push.probe.as_ref());
        self.take(config).await;
        // Whoever does not wait any more needs no answer.
        let _ = push.answer.send(answer);
    }

    async fn look(&mut self) {
        if let Some(config) = self.source.look() {
            self.take(config).await;
        }
        self.next_look = Instant::now() + POLL;
    }

    async fn take(&mut self, config: Config) {
        self.metrics.health.config(config.word());
        if config != Config::Applied {
            self.diary().configured(&self.source, self.probe.clone());
            return;
        }
        // What the old one says is not about the new one.
        self.running.shutdown().await;
        self.configured();
        let flip = self.state.set_probe(self.source.probe().map(|probe| probe.thresholds));
        self.flipped(flip);
    }

    /// Another probe is in force, or none.
    fn configured(&mut self) {
        let probe = self.source.probe().cloned();
        self.probe = probe.as_deref().map(|probe| Arc::new(shown(probe)));
        match &self.probe {
            Some(probe) => info!(%probe, source = self.source.word(), "probe"),
            None => info!(source = self.source.word(), "no probe"),
        }
        let delay = probe.as_deref().map_or(Duration::ZERO, |probe| probe.initial_delay.min(LONG));
        self.next = Instant::now().max(self.started + delay);
        let interval = probe.as_deref().map(|probe| probe.period.saturating_add(probe.timeout));
        let due = probe.as_deref().map(|probe| self.next + verdict(probe.thresholds, probe).min(LONG));
        let shown = self.probe.clone();
        self.now.send_modify(|known| {
            (known.probe, known.interval) = (shown.clone(), interval);
            known.verdict_due = due.filter(|_| known.generation == 0);
        });
        self.diary().configured(&self.source, shown);
    }

    async fn end(&mut self, end: Option<End>) {
        let Some(end) = end else {
            // Nobody observes any more: the agent is about to be gone.
            return std::future::pending().await;
        };
        self.running.shutdown().await;
        let flip = self.state.end(end);
        self.flipped(flip);
    }

    fn diary(&self) -> std::sync::MutexGuard<'_, Diary> {
        self.diary.lock().expect("nothing panics while it holds this lock")
    }
}

/// The longest way to a first verdict, from the first probe.
fn verdict(thresholds: Thresholds, probe: &WorkloadProbe) -> Duration {
    let most = thresholds.success.max(thresholds.failure).get();
    probe.period.saturating_add(probe.timeout).saturating_mul(most)
}

/// Returns when the state has to end in another way than it has. `None`: nobody says so any more.
async fn ended(phases: &mut watch::Receiver<Arc<Snapshot>>, reason: HealthReason) -> Option<End> {
    let end = |snapshot: &Arc<Snapshot>| match (snapshot.phase, reason) {
        (Phase::Terminating, HealthReason::Terminating) => None,
        (Phase::Terminating, _) => Some(End::Terminating),
        (Phase::Draining, HealthReason::Draining | HealthReason::Terminating) => None,
        (Phase::Draining, _) => Some(End::Draining),
        _ => None,
    };
    let found = phases.wait_for(|snapshot| end(snapshot).is_some()).await.ok()?;
    end(&found)
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
