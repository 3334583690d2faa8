//! The task of the store: processes watch events, desired states, API responses and Leases one
//! after the other, and sends requests and outputs.

mod reachability;
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
use tracing::warn;

use super::api::Api;
use super::decision::{DesiredState, ReplicaContext};
use super::entry_writer::{Effect, EntryWriter};
use super::lease_task::LeaseList;
use super::leases::{Isolation, Leases};
use super::request::ApiError;
use super::watched_config::WatchedConfig;
use super::watches::{Kind, WatchScope, Watched, Watches};
use super::{object, store};
use crate::config_dir::Configured;
use crate::metrics::Metrics;
use discovery::entries::{Input, Record};
use discovery::objects::Key;

/// Changes of the configuration within this time are published together.
const PUBLISH_DELAY: Duration = Duration::from_millis(100);

/// Channels to the rest of the process.
pub(super) struct Outputs {
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) configured: watch::Sender<Configured>,
    pub(super) degraded: watch::Sender<Option<String>>,
    pub(super) isolated: watch::Sender<bool>,
    pub(super) metrics: Arc<Metrics>,
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
    requests: JoinSet<(Key, Result<Value, ApiError>, Duration)>,
    /// Last rejection of each entry, so that it is logged once.
    rejected: BTreeMap<Key, String>,
    leases: Leases,
    isolation: Isolation,
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
            isolation: Isolation::default(),
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
                Some(Ok(response)) = self.requests.join_next() => self.on_response(response).await,
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
                        let response = api.entry(&key, &request).await;
                        (key, response, begin.elapsed())
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
        (key, response, took): (Key, Result<Value, ApiError>, Duration),
    ) -> Vec<Effect> {
        let failed = matches!(response, Err(ApiError::Rejected(_) | ApiError::Unreachable(_)));
        self.outputs.metrics.committed(took.as_secs_f64(), !failed);
        if let Err(ApiError::Rejected(text)) = &response {
            if self.rejected.get(&key) != Some(text) {
                warn!(entry = %key, error = text, "API server rejected the write of an entry");
                self.rejected.insert(key.clone(), text.clone());
            }
        } else if !failed {
            self.rejected.remove(&key);
        }
        let effects = self.writer.on_response(self.now(), key, response);
        self.update_reachability().await;
        effects
    }
}
