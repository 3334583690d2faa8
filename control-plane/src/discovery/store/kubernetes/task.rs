//! The task of the store: processes watch events, desired states, API responses and Leases one
//! after the other, and sends requests and outputs.

mod watch_events;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::api::{Api, ApiError};
use super::decision::{DesiredState, ReplicaContext};
use super::entry_writer::{ApiResult, Effect, EntryWriter};
use super::lease_task::LeaseList;
use super::leases::Leases;
use super::watched_config::WatchedConfig;
use super::watches::{Kind, WatchScope, Watched, Watches};
use super::{object, store};
use crate::discovery::config_dir::Configured;
use crate::discovery::metrics::Metrics;
use discovery::entries::{Input, Record};
use discovery::objects::Key;

/// Changes of the configuration within this time are published together.
const PUBLISH_DELAY: Duration = Duration::from_millis(100);

/// Channels to the rest of the process.
pub(super) struct Outputs {
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) configured: watch::Sender<Configured>,
    pub(super) degraded: watch::Sender<Option<String>>,
    pub(super) metrics: Arc<Metrics>,
}

/// Result of a request.
struct RequestResult {
    key: Key,
    answer: ApiResult,
    error: Option<ApiError>,
    took: Duration,
}

/// State of the store task.
pub(super) struct Task {
    api: Api,
    /// Watches whose first list is not complete.
    unlisted: BTreeSet<WatchScope>,
    /// Keys that the current list has contained so far.
    listings: BTreeMap<WatchScope, BTreeSet<Key>>,
    /// Last error of each failed watch.
    failed_watches: BTreeMap<WatchScope, String>,
    config: WatchedConfig,
    publish_at: Option<Instant>,
    writer: EntryWriter,
    requests: JoinSet<RequestResult>,
    /// Last rejection of each entry, so that it is logged once.
    rejected: BTreeMap<Key, String>,
    leases: Leases,
    alive: BTreeSet<String>,
    /// True if the API server was unreachable for the last request for the Leases.
    leases_unreachable: bool,
    unreachable: bool,
    started: Instant,
    outputs: Outputs,
}

impl Task {
    pub(super) fn new(
        api: Api,
        instance: String,
        per_second: NonZeroU32,
        unlisted: BTreeSet<WatchScope>,
        outputs: Outputs,
    ) -> Self {
        let writer = ReplicaContext { instance: instance.clone(), alive: BTreeSet::from([instance.clone()]) };
        Self {
            api,
            unlisted,
            listings: BTreeMap::new(),
            failed_watches: BTreeMap::new(),
            config: WatchedConfig::default(),
            publish_at: None,
            writer: EntryWriter::new(writer, per_second),
            requests: JoinSet::new(),
            rejected: BTreeMap::new(),
            leases: Leases::new(instance),
            alive: BTreeSet::new(),
            leases_unreachable: false,
            unreachable: false,
            started: Instant::now(),
            outputs,
        }
    }

    /// True if the first list of a watch is not complete.
    pub(super) fn is_listing(&self) -> bool {
        !self.unlisted.is_empty()
    }

    /// Processes events before the registry exists; it receives the resulting records as a whole.
    pub(super) fn process_initial(&mut self, watched: Watched) {
        for effect in self.on_watch_event(watched) {
            if let Effect::ConfigChanged(key) = effect {
                self.update_entry_config(&key);
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the records of all entries that carry any state.
    pub(super) fn stored(&self) -> Vec<(Key, Record)> {
        let records = self.writer.objects().iter().map(|(key, object)| (key.clone(), object::record(object)));
        let nothing = |record: &Record| {
            *record == Record { resource_version: record.resource_version.clone(), ..Record::default() }
        };
        records.filter(|(_, record)| !nothing(record)).collect()
    }

    /// Runs until the registry has dropped its receiver.
    pub(super) async fn run(
        &mut self,
        mut watches: Watches,
        pending_writes: store::PendingWrites,
        mut lease_lists: mpsc::Receiver<LeaseList>,
    ) {
        let mut effects = Vec::new();
        let inputs = self.outputs.inputs.clone();
        loop {
            if !self.apply_effects(std::mem::take(&mut effects)).await {
                return;
            }
            let due = [self.writer.next_due().map(|due| self.started + due), self.publish_at];
            let due = due.into_iter().flatten().min();
            effects = tokio::select! {
                pending_writes = pending_writes.take() => {
                    pending_writes.into_iter().for_each(|(key, desired)| self.desired(key, desired));
                    Vec::new()
                }
                Some(watched) = watches.next() => self.on_watch_event(watched),
                Some(Ok(answered)) = self.requests.join_next() => self.on_response(answered).await,
                Some(list) = lease_lists.recv() => { self.leases_read(list).await; Vec::new() }
                () = inputs.closed() => return,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Vec::new(),
            };
        }
    }

    fn desired(&mut self, key: Key, store::Write { sequence, record, session }: store::Write) {
        let desired = record.map_or(DesiredState::Delete(session), DesiredState::Put);
        self.writer.set_desired(key, sequence, desired);
    }

    async fn send_to_registry(&self, input: Input) -> bool {
        self.outputs.inputs.send(input).await.is_ok()
    }

    /// Applies effects and sends due requests; returns false if the registry has ended.
    async fn apply_effects(&mut self, mut effects: Vec<Effect>) -> bool {
        effects.extend(self.writer.step(self.now()));
        for effect in effects {
            let input = match effect {
                Effect::Send(key, request) => {
                    let api = self.api.clone();
                    self.requests.spawn(async move {
                        let begin = Instant::now();
                        let (answer, error) = api.entry(&key, &request).await;
                        RequestResult { key, answer, error, took: begin.elapsed() }
                    });
                    continue;
                }
                Effect::ConfigChanged(key) => {
                    self.update_entry_config(&key);
                    continue;
                }
                Effect::Stored(key, write) => Input::Stored { key, write },
                Effect::Observed(key, record) => {
                    self.rejected.remove(&key);
                    Input::Observed { key, record }
                }
            };
            if !self.send_to_registry(input).await {
                return false;
            }
        }
        if self.publish_at.is_some_and(|at| at <= Instant::now()) {
            self.publish_config();
        }
        true
    }

    /// Publishes the configuration and its errors to discovery.
    pub(super) fn publish_config(&mut self) {
        self.publish_at = None;
        let configured = Configured {
            config: self.config.config(),
            errors: self.config.errors(),
            warnings: self.config.warnings(),
        };
        self.outputs.configured.send_replace(configured);
    }

    fn update_config(&mut self, kind: Kind, key: &Key, object: Option<&Value>) {
        if self.config.update(kind, key, object) {
            self.publish_at.get_or_insert_with(|| Instant::now() + PUBLISH_DELAY);
        }
    }

    fn update_entry_config(&mut self, key: &Key) {
        let object = self.writer.objects().get(key).cloned();
        self.update_config(Kind::Entry, key, object.as_deref());
    }

    async fn on_response(
        &mut self,
        RequestResult { key, answer, error, took }: RequestResult,
    ) -> Vec<Effect> {
        match error {
            None => {
                self.rejected.remove(&key);
                self.outputs.metrics.committed(took.as_secs_f64(), true);
            }
            Some(error) => {
                self.outputs.metrics.committed(took.as_secs_f64(), false);
                let text = error.to_string();
                if answer == ApiResult::Rejected && self.rejected.get(&key) != Some(&text) {
                    warn!(entry = %key, error = text, "API server rejected the write of an entry");
                    self.rejected.insert(key.clone(), text);
                }
            }
        }
        let effects = self.writer.on_response(self.now(), key, answer);
        self.update_reachability().await;
        effects
    }

    pub(super) async fn leases_read(&mut self, list: LeaseList) {
        // A rejected request does not affect the other Leases, and it shows that the API server is
        // reachable.
        self.leases_unreachable = matches!(list, Err(ApiError::Unreachable(_)));
        self.update_reachability().await;
        let Ok(leases) = list else { return };
        let replicas = self.leases.update(self.now(), leases);
        for (instance, version) in replicas.stale {
            let api = self.api.clone();
            // Ignores errors, since another replica may have deleted it.
            tokio::spawn(async move { api.delete_lease(&instance, &version).await.ok() });
        }
        if replicas.alive != self.alive {
            info!(replicas = ?replicas.alive, "live replicas changed");
            self.alive.clone_from(&replicas.alive);
            self.writer.set_alive(replicas.alive.clone());
            self.send_to_registry(Input::Replicas { alive: replicas.alive }).await;
        }
    }

    /// Updates whether the API server is reachable, and the reason for degraded health.
    async fn update_reachability(&mut self) {
        let unreachable = self.leases_unreachable || self.writer.is_unreachable();
        if unreachable != self.unreachable {
            self.unreachable = unreachable;
            if unreachable {
                warn!(entries = self.writer.pending_count(), "API server unreachable");
            } else {
                info!("API server reachable again");
            }
            self.send_to_registry(Input::StoreAway(unreachable)).await;
        }
        let entries = self.writer.pending_count();
        let rejected = self.rejected.iter().next();
        let degraded = match rejected {
            _ if unreachable => Some(format!("store: API server unreachable, {entries} entries not written")),
            Some((key, text)) => Some(format!("store: API server rejected entry {key}: {text}")),
            None => None,
        };
        self.outputs.degraded.send_if_modified(|current| {
            let changed = current.is_some() != degraded.is_some();
            *current = degraded;
            changed
        });
    }
}
