//! Background task that sends readiness requests to Envoy, applies the results and publishes
//! snapshots. It has one loop per channel, so that at most one request per channel is in flight.
//! Clients of port 15021 never wait for these requests.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::{
    AdminPace, Channel, Condition, DataPathPace, Failure, Observation, Phase, Policy, Ready, Snapshot,
};
use crate::address::HttpUrl;
use crate::envoy::{AdminQuestion, admin};
use crate::envoy_version::lacks_fixes;
use crate::http_client::{Released, Spare};
use crate::metrics::Metrics;

/// Destinations of the readiness requests.
#[derive(Debug, Clone)]
pub struct Questions {
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    /// First timeout of an admin request.
    pub admin_timeout: Duration,
    /// URL of the probe listener; `None` disables its requests.
    pub data_path: Option<HttpUrl>,
    /// True if Envoy is a child process.
    pub child: bool,
}

/// Shared readiness state and its subscribers.
pub struct Observer {
    ready: Mutex<Ready>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    started: Instant,
    metrics: Arc<Metrics>,
}

impl Observer {
    /// Creates the initial state, whose time starts now.
    pub fn new(policy: Policy, metrics: Arc<Metrics>) -> Self {
        let ready = Ready::new(policy, Duration::ZERO);
        metrics.observe(ready.snapshot(), ready.snapshot(), Duration::ZERO);
        let snapshots = watch::Sender::new(Arc::new(ready.snapshot().clone()));
        Self { ready: Mutex::new(ready), snapshots, started: Instant::now(), metrics }
    }

    pub fn metrics(&self) -> &Metrics {
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

    /// Applies an observation that is not the result of a request, and publishes it immediately.
    pub fn tell(&self, observation: Observation) {
        let generation = self.ready().generation();
        self.observe(generation, observation);
    }

    /// Evaluates `question` on the readiness state.
    pub fn look<T>(&self, question: impl FnOnce(&Ready) -> T) -> T {
        question(&self.ready())
    }

    fn observe(&self, generation: u32, observation: Observation) {
        let now = self.now();
        let mut ready = self.ready();
        let hidden_before = ready.workers_hidden();
        ready.observe(generation, observation, now);
        if ready.workers_hidden() && !hidden_before {
            warn!(
                "listener_manager.workers_started is hidden by Envoy's stats matcher, the data path is checked instead"
            );
        }
        self.snapshots.send_if_modified(|snapshot| {
            let changed = **snapshot != *ready.snapshot();
            if changed {
                let next = Arc::new(ready.snapshot().clone());
                log(snapshot, &next, now);
                self.metrics.observe(snapshot, &next, now);
                *snapshot = next;
            }
            changed
        });
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().expect("nothing panics while it holds this lock")
    }

    /// Waits until `is_over` is true; it is evaluated again for every snapshot.
    async fn until(&self, is_over: impl Fn(&Ready) -> bool) {
        let mut snapshots = self.subscribe();
        while !is_over(&self.ready()) {
            snapshots.changed().await.expect("the sender is dropped only with self");
        }
    }
}

/// Sends requests without end.
pub async fn run(observer: &Observer, questions: Questions) {
    let Questions { admin, admin_timeout, data_path, child } = questions;
    let admin_pace = AdminPace::new(admin_timeout, data_path.is_none() && !child);
    match data_path {
        Some(data_path) => {
            let data_path = ask_data_path(observer, data_path, DataPathPace::new(child));
            tokio::join!(ask_admin(observer, admin, admin_pace), data_path);
        }
        None => ask_admin(observer, admin, admin_pace).await,
    }
}

async fn ask_admin(observer: &Observer, url: HttpUrl, mut pace: AdminPace) {
    let mut silent = false;
    let mut spare = Spare::new();
    loop {
        observer.until(Ready::has_envoy).await;
        let (question, life) = {
            let ready = observer.ready();
            (ready.admin_question(), ready.life())
        };
        let deadline = pace.deadline(question, life, observer.now());
        let asked = admin_question(observer, &url, question, life.0, deadline, spare.release());
        let failure = tokio::select! {
            failure = asked => failure,
            () = observer.until(|ready| ready.generation() != life.0) => continue,
        };
        let pause = pace.pause(failure, observer.now());
        if question == AdminQuestion::ServerInfo && silent != failure.is_some() {
            silent = !silent;
            match failure {
                Some(failure) => warn!(?failure, "envoy admin request failed, readiness unchanged"),
                None => warn!("envoy admin request succeeded again"),
            }
        }
        let (next, life_now) = {
            let ready = observer.ready();
            (ready.admin_question(), ready.life())
        };
        // The next stage follows immediately, but never the first one, to avoid a busy loop.
        if next != question && next != AdminQuestion::Ready {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = observer.until(|ready| ready.life() != life_now) => {}
        }
    }
}

async fn admin_question(
    observer: &Observer,
    url: &HttpUrl,
    question: AdminQuestion,
    generation: u32,
    deadline: Duration,
    _descriptor: Released<'_>,
) -> Option<Failure> {
    let asked_at = Instant::now();
    let answer = match admin::connect(url, deadline).await? {
        Ok(asked) => {
            observer.observe(generation, Observation::Accepted(Channel::Admin));
            asked.admin(url, question).await?
        }
        Err(failure) => Err(failure),
    };
    debug!(?question, ?answer, "admin request completed");
    let failure = answer.as_ref().err().copied();
    observer.metrics.admin_question(failure, asked_at.elapsed());
    observer.observe(generation, Observation::Admin(answer));
    failure
}

async fn ask_data_path(observer: &Observer, url: HttpUrl, mut pace: DataPathPace) {
    let mut spare = Spare::new();
    loop {
        observer.until(Ready::has_envoy).await;
        let generation = observer.ready().generation();
        let asked = data_path_question(observer, &url, generation, pace.deadline(), spare.release());
        let failure = tokio::select! {
            failure = asked => failure,
            () = observer.until(|ready| ready.generation() != generation) => continue,
        };
        let (pending, failing, life) = {
            let ready = observer.ready();
            (ready.data_path_pending(), ready.data_path_failing(), ready.life())
        };
        let pause = pace.pause(pending, life, failure, failing, observer.now());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = observer.until(|ready| ready.life() != life) => {}
        }
    }
}

async fn data_path_question(
    observer: &Observer,
    url: &HttpUrl,
    generation: u32,
    deadline: Duration,
    _descriptor: Released<'_>,
) -> Option<Failure> {
    let answer = match admin::connect(url, deadline).await? {
        Ok(asked) => {
            observer.observe(generation, Observation::Accepted(Channel::DataPath));
            asked.data_path(url).await?
        }
        Err(failure) => Err(failure),
    };
    debug!(?answer, "data path request completed");
    let failure = answer.as_ref().err().copied();
    observer.metrics.data_path_question(failure);
    observer.observe(generation, Observation::DataPath(answer));
    failure
}

/// Logs the differences between two snapshots.
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

#[cfg(test)]
mod tests;
