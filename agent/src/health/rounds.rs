//! The probe loop: when a probe begins, what follows from its result, and how configuration changes
//! and shutdown affect it. Only one probe runs at a time; all times use the monotonic clock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use workload_health::{HealthReason, HealthState, Outcome, Shutdown, Transition, WorkloadProbe};

use super::Push;
use super::board::Board;
use super::source::{Config, Source};
use crate::metrics::Metrics;
use crate::readiness::{Phase, Snapshot};

/// Interval between two checks of the WorkloadGroup file.
const POLL: Duration = Duration::from_secs(5);
/// Upper bound of periods and delays, a century, so that adding one to an [`Instant`] cannot
/// overflow.
const LONG: Duration = Duration::from_secs(100 * 365 * 86_400);

/// State of the loop. `A` performs a probe; `R` returns why Envoy is not ready, `None` if it is.
pub(super) struct Rounds<A, R> {
    ask: A,
    not_ready: R,
    source: Source,
    pushes: mpsc::Receiver<Push>,
    phases: watch::Receiver<Arc<Snapshot>>,
    state: HealthState,
    board: Board,
    /// The agent's start, from which the initial delay counts.
    started: Instant,
    /// Earliest start of the next probe.
    next: Instant,
    next_look: Instant,
    /// The running probe, if any.
    running: JoinSet<Outcome>,
    began: Instant,
}

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
    ) -> Self {
        let started = Instant::now();
        let state = HealthState::new(source.probe().map(|probe| probe.thresholds));
        let board = Board::new(&state, started, metrics);
        let mut rounds = Self {
            ask,
            not_ready,
            source,
            pushes,
            phases,
            state,
            board,
            started,
            next: started,
            next_look: started + POLL,
            running: JoinSet::new(),
            began: started,
        };
        rounds.configured();
        rounds
    }

    pub(super) fn board(&self) -> &Board {
        &self.board
    }

    /// Runs until the task is aborted.
    pub(super) async fn run(mut self) {
        loop {
            let due = self.due();
            let (look, has_file) = (self.next_look, self.source.has_file());
            tokio::select! {
                biased;
                end = ended(&mut self.phases, self.state.reason()) => self.end(end).await,
                Some(push) = self.pushes.recv() => self.pushed(push).await,
                Some(joined) = self.running.join_next() => self.observe(joined.unwrap_or_else(|error| lost(&error))),
                () = sleep_until(look), if has_file => self.look().await,
                () = until(due) => self.begin(),
            }
        }
    }

    /// Returns when the next probe begins; `None` if another event must happen first.
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
        // The probe runs in its own task, so that a panic does not end the loop.
        self.running.spawn((self.ask)(probe));
    }

    fn observe(&mut self, outcome: Outcome) {
        let Some(probe) = self.source.probe() else { return };
        let now = Instant::now();
        self.next = now.max(self.began + probe.period.min(LONG));
        let took = now.saturating_duration_since(self.began);
        self.board.ended(probe.handler.kind(), &outcome, now, took);
        let flip = self.state.observe(outcome);
        self.flipped(flip);
    }

    fn flipped(&mut self, flip: Option<Transition>) {
        self.board.state(&self.state, flip);
    }

    async fn pushed(&mut self, push: Push) {
        let (config, answer) = self.source.push(push.probe.as_ref());
        self.take(config).await;
        // Sending fails if the caller no longer waits.
        let _ = push.answer.send(answer);
    }

    async fn look(&mut self) {
        if let Some(config) = self.source.look() {
            self.take(config).await;
        }
        self.next_look = Instant::now() + POLL;
    }

    async fn take(&mut self, config: Config) {
        self.board.looked(config, &self.source);
        if config != Config::Applied {
            return;
        }
        // The result of a running probe of the previous configuration is discarded.
        self.running.shutdown().await;
        self.configured();
        let flip = self.state.set_probe(self.source.probe().map(|probe| probe.thresholds));
        self.flipped(flip);
    }

    /// Applies a changed or removed probe.
    fn configured(&mut self) {
        let delay = self.source.probe().map_or(Duration::ZERO, |probe| probe.initial_delay.min(LONG));
        self.next = Instant::now().max(self.started + delay);
        self.board.configured(&self.source, self.next, LONG);
    }

    async fn end(&mut self, end: Option<Shutdown>) {
        let Some(end) = end else {
            // The observer is gone, so the agent is about to exit.
            return std::future::pending().await;
        };
        self.running.shutdown().await;
        let flip = self.state.shut_down(end);
        self.flipped(flip);
    }
}

fn lost(error: &JoinError) -> Outcome {
    let how = if error.is_panic() { "the prober panicked" } else { "the probe task was cancelled" };
    Outcome::unhealthy(HealthReason::CannotRun, how)
}

/// Returns when the phase requires another final state than `reason`; `None` if the observer is
/// gone.
async fn ended(phases: &mut watch::Receiver<Arc<Snapshot>>, reason: HealthReason) -> Option<Shutdown> {
    let end = |snapshot: &Arc<Snapshot>| match (snapshot.phase, reason) {
        (Phase::Terminating, HealthReason::Terminating) => None,
        (Phase::Terminating, _) => Some(Shutdown::Terminating),
        (Phase::Draining, HealthReason::Draining | HealthReason::Terminating) => None,
        (Phase::Draining, _) => Some(Shutdown::Draining),
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
