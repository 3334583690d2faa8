//! The readiness state that all tasks of the agent share, and its subscribers.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::metrics::{ExitCause, Metrics};
use envoy_bootstrap::envoy_version::lacks_fixes;
use readiness::listeners::DrainPlan;
use readiness::listeners::DrainScope;
use readiness::process_history::{ProcessEvent, ProcessHistory};
use readiness::{Condition, Observation, Phase, Policy, Readiness, Silence, Snapshot};

/// Shared readiness state and its subscribers.
pub struct AgentState {
    ready: Mutex<Readiness>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    silence: watch::Sender<Silence>,
    /// Age of the xDS configuration that came from the cache, and the time at which it had that age.
    stale: Mutex<Option<(Duration, Duration)>>,
    /// Why the xDS configuration could not be stored.
    store_error: Mutex<Option<String>>,
    processes: Mutex<ProcessHistory>,
    drain_plan: Mutex<DrainPlan>,
    started: Instant,
    metrics: Arc<Metrics>,
}

impl AgentState {
    pub fn new(policy: Policy, metrics: Arc<Metrics>) -> Self {
        let ready = Readiness::new(policy, Duration::ZERO);
        metrics.observe(ready.snapshot(), ready.snapshot(), Duration::ZERO);
        let snapshots = watch::Sender::new(Arc::new(ready.snapshot().clone()));
        let silence = watch::Sender::new(ready.silence());
        Self {
            ready: Mutex::new(ready),
            snapshots,
            silence,
            stale: Mutex::default(),
            store_error: Mutex::default(),
            processes: Mutex::default(),
            drain_plan: Mutex::new(DrainPlan::new(DrainScope::All, None)),
            started: Instant::now(),
            metrics,
        }
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Subscribes to the current snapshot and to all later ones that differ.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.subscribe()
    }

    /// Returns the time since the agent's start, by the monotonic clock.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Records whether Envoy uses a stored xDS configuration, and how old it is.
    pub fn set_stale(&self, age: Option<Duration>) {
        *self.stale.lock().expect("nothing panics while it holds this lock") =
            age.map(|age| (age, self.now()));
    }

    /// Returns the age of the stored xDS configuration that Envoy uses; `None` if it uses none.
    pub fn stale(&self) -> Option<Duration> {
        let stale = *self.stale.lock().expect("nothing panics while it holds this lock");
        stale.map(|(age, at)| age.saturating_add(self.now().saturating_sub(at)))
    }

    /// Records why the last attempt to store the xDS configuration failed.
    pub fn set_store_error(&self, error: Option<&str>) {
        let mut known = self.store_error.lock().expect("nothing panics while it holds this lock");
        if known.as_deref() != error {
            *known = error.map(str::to_owned);
        }
    }

    /// Returns why the xDS configuration could not be stored.
    pub fn store_error(&self) -> Option<String> {
        self.store_error.lock().expect("nothing panics while it holds this lock").clone()
    }

    /// Applies an observation that is not the result of a request, and publishes it immediately.
    pub fn apply(&self, observation: Observation) {
        let generation = self.ready().generation();
        self.apply_result(generation, observation);
    }

    pub fn with_readiness<T>(&self, read: impl FnOnce(&Readiness) -> T) -> T {
        read(&self.ready())
    }

    /// Applies the result of a request that was sent in `generation`.
    pub fn apply_result(&self, generation: u32, observation: Observation) {
        let now = self.now();
        let mut ready = self.ready();
        let hidden_before = ready.workers_hidden();
        ready.observe(generation, observation, now);
        if ready.workers_hidden() && !hidden_before {
            warn!(
                "listener_manager.workers_started is hidden by Envoy's stats matcher, the data path is checked instead"
            );
        }
        self.silence
            .send_if_modified(|silence| std::mem::replace(silence, ready.silence()) != ready.silence());
        self.snapshots.send_if_modified(|snapshot| {
            let changed = **snapshot != *ready.snapshot();
            if changed {
                let next = Arc::new(ready.snapshot().clone());
                log(snapshot, &next, now);
                self.metrics.observe(snapshot, &next, now);
                self.processes().observe(snapshot, &next, now);
                *snapshot = next;
            }
            changed
        });
    }

    /// Records why Envoy exited.
    pub fn envoy_exited(&self, cause: ExitCause) {
        self.metrics.envoy_exited(cause);
        self.processes().explain_exit(cause.to_string());
    }

    /// Returns the last starts and exits of Envoy, oldest first.
    pub fn process_events(&self) -> Vec<ProcessEvent> {
        self.processes().events()
    }

    /// Records which listeners the drain reaches.
    pub fn set_drain_plan(&self, plan: DrainPlan) {
        *self.drain_plan.lock().expect("nothing panics while it holds this lock") = plan;
    }

    /// Returns which listeners the last drain reached; all before the first one.
    pub fn drain_plan(&self) -> DrainPlan {
        self.drain_plan.lock().expect("nothing panics while it holds this lock").clone()
    }

    fn processes(&self) -> MutexGuard<'_, ProcessHistory> {
        self.processes.lock().expect("nothing panics while it holds this lock")
    }

    fn ready(&self) -> MutexGuard<'_, Readiness> {
        self.ready.lock().expect("nothing panics while it holds this lock")
    }

    /// Waits until `condition` is true; it is evaluated again for every snapshot.
    pub async fn wait_until(&self, condition: impl Fn(&Readiness) -> bool) {
        let mut snapshots = self.subscribe();
        while !condition(&self.ready()) {
            snapshots.changed().await.expect("the sender is dropped only with self");
        }
    }

    /// Waits until `condition` is true for the period in which Envoy does not respond.
    pub async fn wait_for_silence(&self, condition: impl Fn(&Silence) -> bool) {
        let mut silence = self.silence.subscribe();
        silence.wait_for(condition).await.expect("the sender is dropped only with self");
    }
}

/// Writes an age in its largest whole unit, for example `12m`.
pub fn age_text(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86400),
    }
}

fn log(before: &Snapshot, after: &Snapshot, now: Duration) {
    if before.envoy != after.envoy
        && let Some(version) = after.envoy.as_deref().filter(|version| lacks_fixes(version))
    {
        warn!(
            version,
            "envoy version lacks fixes that the probe path needs: use 1.36.10, 1.37.6, 1.38.4, 1.39.1 or newer"
        );
    }
    for pending in &after.pending {
        if !before.pending.iter().any(|other| other.reason == pending.reason) {
            info!(
                condition = pending.condition.name(),
                reason = pending.reason,
                epoch = after.epoch,
                "readiness condition pending"
            );
        }
    }
    for pending in &before.pending {
        if after.met.iter().any(|(condition, _)| *condition == pending.condition) {
            let seconds = now.saturating_sub(pending.since).as_secs_f64();
            info!(
                condition = pending.condition.name(),
                reason = pending.reason,
                seconds,
                epoch = after.epoch,
                "readiness condition met"
            );
        }
    }
    if after.phase == Phase::Ready && before.phase != Phase::Ready {
        let of_envoy =
            after.met.iter().filter(|(met, _)| !matches!(met, Condition::Drain | Condition::Shutdown));
        let times = of_envoy.map(|(condition, at)| format!("{} {:.2}s", condition.name(), at.as_secs_f64()));
        let met = times.collect::<Vec<_>>().join(", ");
        info!(seconds = now.as_secs_f64(), met, epoch = after.epoch, "envoy became ready");
    }
}
