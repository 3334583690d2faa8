//! The task of the store: processes watch events, desired states, API responses and Leases one
//! after the other, and sends requests and outputs.

mod watched;

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
use super::configuration::Configuration;
use super::decision::{Wish, Writer};
use super::leases::Leases;
use super::replica::Look;
use super::watches::{Kind, Place, Watched, Watches};
use super::writes::{Answer, Effect, Writes};
use super::{object, store};
use crate::discovery::config_dir::Configured;
use crate::discovery::metrics::Metrics;
use discovery::entries::{Input, Record};
use discovery::objects::Key;

/// Changes of the configuration within this time are published together.
const CONFIGURATION: Duration = Duration::from_millis(100);

/// Channels to the rest of the process.
pub(super) struct Outputs {
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) configured: watch::Sender<Configured>,
    pub(super) degraded: watch::Sender<Option<String>>,
    pub(super) metrics: Arc<Metrics>,
}

/// Result of a request.
struct Answered {
    key: Key,
    answer: Answer,
    error: Option<ApiError>,
    took: Duration,
}

/// State of the store task.
pub(super) struct Task {
    api: Api,
    /// Watches whose first list is not complete.
    waiting: BTreeSet<Place>,
    /// Keys that the current list has contained so far.
    listings: BTreeMap<Place, BTreeSet<Key>>,
    /// Last error of each failed watch.
    broken: BTreeMap<Place, String>,
    configuration: Configuration,
    reconfigure: Option<Instant>,
    writes: Writes,
    requests: JoinSet<Answered>,
    /// Last rejection of each entry, so that it is logged once.
    refused: BTreeMap<Key, String>,
    leases: Leases,
    alive: BTreeSet<String>,
    /// True if the API server was unreachable for the last request for the Leases.
    unseen: bool,
    away: bool,
    started: Instant,
    outputs: Outputs,
}

impl Task {
    pub(super) fn new(
        api: Api,
        instance: String,
        per_second: NonZeroU32,
        waiting: BTreeSet<Place>,
        outputs: Outputs,
    ) -> Self {
        let writer = Writer { instance: instance.clone(), alive: BTreeSet::from([instance.clone()]) };
        Self {
            api,
            waiting,
            listings: BTreeMap::new(),
            broken: BTreeMap::new(),
            configuration: Configuration::default(),
            reconfigure: None,
            writes: Writes::new(writer, per_second),
            requests: JoinSet::new(),
            refused: BTreeMap::new(),
            leases: Leases::new(instance),
            alive: BTreeSet::new(),
            unseen: false,
            away: false,
            started: Instant::now(),
            outputs,
        }
    }

    /// True if the first list of a watch is not complete.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Processes events before the registry exists; it receives the resulting records as a whole.
    pub(super) fn first(&mut self, watched: Watched) {
        for effect in self.watched(watched) {
            if let Effect::Changed(key) = effect {
                self.entry_configured(&key);
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the records of all entries that carry any state.
    pub(super) fn stored(&self) -> Vec<(Key, Record)> {
        let records = self.writes.objects().iter().map(|(key, object)| (key.clone(), object::record(object)));
        let nothing = |record: &Record| {
            *record == Record { resource_version: record.resource_version.clone(), ..Record::default() }
        };
        records.filter(|(_, record)| !nothing(record)).collect()
    }

    /// Runs until the registry has dropped its receiver.
    pub(super) async fn run(
        &mut self,
        mut watches: Watches,
        wishes: store::Writes,
        mut looks: mpsc::Receiver<Look>,
    ) {
        let mut effects = Vec::new();
        let inputs = self.outputs.inputs.clone();
        loop {
            if !self.carry_out(std::mem::take(&mut effects)).await {
                return;
            }
            let due = [self.writes.next_due().map(|due| self.started + due), self.reconfigure];
            let due = due.into_iter().flatten().min();
            effects = tokio::select! {
                wishes = wishes.take() => {
                    wishes.into_iter().for_each(|(key, wish)| self.wish(key, wish));
                    Vec::new()
                }
                Some(watched) = watches.next() => self.watched(watched),
                Some(Ok(answered)) = self.requests.join_next() => self.answered(answered).await,
                Some(look) = looks.recv() => { self.looked(look).await; Vec::new() }
                () = inputs.closed() => return,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Vec::new(),
            };
        }
    }

    fn wish(&mut self, key: Key, store::Write { write, record, session }: store::Write) {
        let wish = record.map_or(Wish::Delete(session), Wish::Put);
        self.writes.wish(key, write, wish);
    }

    async fn tell(&self, input: Input) -> bool {
        self.outputs.inputs.send(input).await.is_ok()
    }

    /// Applies effects and sends due requests; returns false if the registry has ended.
    async fn carry_out(&mut self, mut effects: Vec<Effect>) -> bool {
        effects.extend(self.writes.step(self.now()));
        for effect in effects {
            let input = match effect {
                Effect::Send(key, request) => {
                    let api = self.api.clone();
                    self.requests.spawn(async move {
                        let begin = Instant::now();
                        let (answer, error) = api.entry(&key, &request).await;
                        Answered { key, answer, error, took: begin.elapsed() }
                    });
                    continue;
                }
                Effect::Changed(key) => {
                    self.entry_configured(&key);
                    continue;
                }
                Effect::Stored(key, write) => Input::Stored { key, write },
                Effect::Observed(key, record) => {
                    self.refused.remove(&key);
                    Input::Observed { key, record }
                }
            };
            if !self.tell(input).await {
                return false;
            }
        }
        if self.reconfigure.is_some_and(|at| at <= Instant::now()) {
            self.configure();
        }
        true
    }

    /// Publishes the configuration and its errors to discovery.
    pub(super) fn configure(&mut self) {
        self.reconfigure = None;
        let configured = Configured {
            config: self.configuration.config(),
            errors: self.configuration.errors(),
            warnings: self.configuration.warnings(),
        };
        self.outputs.configured.send_replace(configured);
    }

    fn configured(&mut self, kind: Kind, key: &Key, object: Option<&Value>) {
        if self.configuration.put(kind, key, object) {
            self.reconfigure.get_or_insert_with(|| Instant::now() + CONFIGURATION);
        }
    }

    fn entry_configured(&mut self, key: &Key) {
        let object = self.writes.objects().get(key).cloned();
        self.configured(Kind::Entry, key, object.as_deref());
    }

    async fn answered(&mut self, Answered { key, answer, error, took }: Answered) -> Vec<Effect> {
        match error {
            None => {
                self.refused.remove(&key);
                self.outputs.metrics.committed(took.as_secs_f64(), true);
            }
            Some(error) => {
                self.outputs.metrics.committed(took.as_secs_f64(), false);
                let text = error.to_string();
                if answer == Answer::Refused && self.refused.get(&key) != Some(&text) {
                    warn!(entry = %key, error = text, "API server rejected the write of an entry");
                    self.refused.insert(key.clone(), text);
                }
            }
        }
        let effects = self.writes.answered(self.now(), key, answer);
        self.judge_away().await;
        effects
    }

    pub(super) async fn looked(&mut self, look: Look) {
        // A rejected request does not affect the other Leases, and it shows that the API server is
        // reachable.
        self.unseen = matches!(look, Err(ApiError::Away(_)));
        self.judge_away().await;
        let Ok(leases) = look else { return };
        let replicas = self.leases.look(self.now(), leases);
        for (instance, version) in replicas.stale {
            let api = self.api.clone();
            // Ignores errors, since another replica may have deleted it.
            tokio::spawn(async move { api.forget(&instance, &version).await.ok() });
        }
        if replicas.alive != self.alive {
            info!(alive = ?replicas.alive, "live replicas changed");
            self.alive.clone_from(&replicas.alive);
            self.writes.alive(replicas.alive.clone());
            self.tell(Input::Replicas { alive: replicas.alive }).await;
        }
    }

    /// Updates whether the API server is reachable, and the reason for degraded health.
    async fn judge_away(&mut self) {
        let away = self.unseen || self.writes.is_failing();
        if away != self.away {
            self.away = away;
            if away {
                warn!(waiting = self.writes.waiting(), "API server unreachable");
            } else {
                info!("API server reachable again");
            }
            self.tell(Input::StoreUnreachable(away)).await;
        }
        let waiting = self.writes.waiting();
        let refused = self.refused.iter().next();
        let degraded = match refused {
            _ if away => Some(format!("store: API server unreachable, {waiting} entries not written")),
            Some((key, text)) => Some(format!("store: API server rejected entry {key}: {text}")),
            None => None,
        };
        self.outputs.degraded.send_if_modified(|there| {
            let is_news = there.is_some() != degraded.is_some();
            *there = degraded;
            is_news
        });
    }
}
