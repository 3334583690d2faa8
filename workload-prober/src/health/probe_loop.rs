//! The probe loop: when a probe begins, what follows from its result, and how configuration changes
//! and shutdown affect it. Only one probe runs at a time; all times use the monotonic clock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use workload_health::{HealthReason, HealthState, Outcome, Shutdown, Transition, WorkloadProbe};

use super::PushedProbe;
use super::publisher::Publisher;
use super::source::{ApplyResult, ProbeSource};
use agent_state::metrics::Metrics;
use readiness::{Phase, Snapshot};

/// Upper bound of periods and delays, a century, so that adding one to an [`Instant`] cannot
/// overflow.
const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 86_400);

/// State of the loop. `A` performs a probe; `R` returns why Envoy is not ready, `None` if it is.
pub(super) struct ProbeLoop<A, R> {
    run_probe: A,
    not_ready: R,
    source: ProbeSource,
    pushes: mpsc::Receiver<PushedProbe>,
    phases: watch::Receiver<Arc<Snapshot>>,
    state: HealthState,
    pub(super) publisher: Publisher,
    /// The agent's start, from which the initial delay counts.
    pub(super) started: Instant,
    /// Earliest start of the next probe.
    next_probe_at: Instant,
    /// The running probe, if any.
    running: JoinSet<Outcome>,
    began: Instant,
}

impl<A, R, F> ProbeLoop<A, R>
where
    A: Fn(Arc<WorkloadProbe>) -> F,
    F: Future<Output = Outcome> + Send + 'static,
    R: Fn() -> Option<String>,
{
    pub(super) fn new(
        run_probe: A,
        not_ready: R,
        source: ProbeSource,
        pushes: mpsc::Receiver<PushedProbe>,
        phases: watch::Receiver<Arc<Snapshot>>,
        metrics: Arc<Metrics>,
        is_logged: bool,
    ) -> Self {
        let started = Instant::now();
        let state = HealthState::new(source.probe().map(|probe| probe.thresholds));
        let publisher = Publisher::new(&state, started, metrics, is_logged);
        let mut probe_loop = Self {
            run_probe,
            not_ready,
            source,
            pushes,
            phases,
            state,
            publisher,
            started,
            next_probe_at: started,
            running: JoinSet::new(),
            began: started,
        };
        probe_loop.configured();
        probe_loop
    }

    /// Runs until the task is aborted.
    pub(super) async fn run(mut self) {
        loop {
            let due = self.due();
            tokio::select! {
                biased;
                change = phase_change(&mut self.phases, self.state.verdict().reason) => self.follow(change).await,
                Some(push) = self.pushes.recv() => self.pushed(push).await,
                Some(joined) = self.running.join_next() => self.observe(joined.unwrap_or_else(|error| probe_task_failed(&error))),
                config = self.source.changed() => self.apply_result(config).await,
                () = sleep_until_due(due) => self.begin(),
            }
        }
    }

    /// Returns when the next probe begins; `None` if another event must happen first.
    fn due(&self) -> Option<Instant> {
        let may = self.source.probe().is_some() && self.running.is_empty() && !self.state.is_final();
        may.then_some(self.next_probe_at)
    }

    fn begin(&mut self) {
        let Some(probe) = self.source.probe().cloned() else { return };
        self.began = Instant::now();
        if let Some(reasons) = (self.not_ready)() {
            let text = format!("Envoy is not ready: {reasons}");
            self.observe(Outcome::unhealthy(HealthReason::EnvoyNotReady, &text));
            return;
        }
        // The probe runs in its own task, so that a panic does not end the loop.
        self.running.spawn((self.run_probe)(probe));
    }

    fn observe(&mut self, outcome: Outcome) {
        let Some(probe) = self.source.probe() else { return };
        let now = Instant::now();
        self.next_probe_at = now.max(self.began + probe.period.min(MAX_DURATION));
        let took = now.saturating_duration_since(self.began);
        self.publisher.probe_ended(probe.handler.kind(), &outcome, now, took);
        let flip = self.state.observe(outcome);
        self.publish(flip);
    }

    fn publish(&mut self, flip: Option<Transition>) {
        self.publisher.publish_state(&self.state, flip);
    }

    async fn pushed(&mut self, push: PushedProbe) {
        let (config, result) = self.source.push(push.probe.as_ref());
        self.apply_result(config).await;
        // Sending fails if the caller no longer waits.
        let _ = push.result.send(result);
    }

    async fn apply_result(&mut self, config: ApplyResult) {
        self.publisher.config_evaluated(config, &self.source);
        if config != ApplyResult::Applied {
            return;
        }
        // The result of a running probe of the previous configuration is discarded.
        self.running.shutdown().await;
        self.configured();
        let flip = self.state.set_probe(self.source.probe().map(|probe| probe.thresholds));
        self.publish(flip);
    }

    /// Applies a changed or removed probe.
    fn configured(&mut self) {
        let delay = self.source.probe().map_or(Duration::ZERO, |probe| probe.initial_delay.min(MAX_DURATION));
        self.next_probe_at = Instant::now().max(self.started + delay);
        self.publisher.configured(&self.source, self.next_probe_at, MAX_DURATION);
    }

    async fn follow(&mut self, change: Option<PhaseChange>) {
        let Some(change) = change else {
            // The observer is gone, so the agent is about to exit.
            return std::future::pending().await;
        };
        let flip = match change {
            PhaseChange::ShutDown(shutdown) => {
                self.running.shutdown().await;
                self.state.shut_down(shutdown)
            }
            PhaseChange::Resume => {
                self.next_probe_at = Instant::now();
                self.state.resume()
            }
        };
        self.publish(flip);
    }
}

fn probe_task_failed(error: &JoinError) -> Outcome {
    let how = if error.is_panic() { "the prober panicked" } else { "the probe task was cancelled" };
    Outcome::unhealthy(HealthReason::CannotRun, how)
}

/// What a change of the agent's phase requires of the workload's health.
#[derive(Debug, Clone, Copy)]
enum PhaseChange {
    ShutDown(Shutdown),
    /// The drain was reversed.
    Resume,
}

/// Returns when the phase requires another state than that with this `reason`; `None` if the observer
/// is gone.
async fn phase_change(
    phases: &mut watch::Receiver<Arc<Snapshot>>,
    reason: HealthReason,
) -> Option<PhaseChange> {
    let change = |snapshot: &Arc<Snapshot>| match (snapshot.phase, reason) {
        (Phase::Terminating, HealthReason::Terminating) => None,
        (Phase::Terminating, _) => Some(PhaseChange::ShutDown(Shutdown::Terminating)),
        (Phase::Draining, HealthReason::Draining | HealthReason::Terminating) => None,
        (Phase::Draining, _) => Some(PhaseChange::ShutDown(Shutdown::Draining)),
        (_, HealthReason::Draining) => Some(PhaseChange::Resume),
        _ => None,
    };
    let found = phases.wait_for(|snapshot| change(snapshot).is_some()).await.ok()?;
    change(&found)
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
