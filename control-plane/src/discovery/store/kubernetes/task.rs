//! The task: watches, wishes, answers and looks come in, one after the other; requests and outputs go out.

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

/// Changes of the configuration within so long make one.
const CONFIGURATION: Duration = Duration::from_millis(100);

/// Where its news go.
pub(super) struct Outputs {
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) configured: watch::Sender<Configured>,
    pub(super) degraded: watch::Sender<Option<String>>,
    pub(super) metrics: Arc<Metrics>,
}

/// What came of a request.
struct Answered {
    key: Key,
    answer: Answer,
    error: Option<ApiError>,
    took: Duration,
}

/// All that it has.
pub(super) struct Task {
    api: Api,
    /// Watches that have not listed yet.
    waiting: BTreeSet<Place>,
    /// What the list that is under way has brought.
    listings: BTreeMap<Place, BTreeSet<Key>>,
    /// The last error of each watch that is broken.
    broken: BTreeMap<Place, String>,
    configuration: Configuration,
    reconfigure: Option<Instant>,
    writes: Writes,
    requests: JoinSet<Answered>,
    /// Last refusals, by entry: said once.
    refused: BTreeMap<Key, String>,
    leases: Leases,
    alive: BTreeSet<String>,
    /// The last look failed.
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

    /// Whether a watch has not listed yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes in what is there before the brain has its records, which it gets as a whole.
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

    /// What somebody has written about an entry.
    pub(super) fn stored(&self) -> Vec<(Key, Record)> {
        let records = self.writes.objects().iter().map(|(key, object)| (key.clone(), object::record(object)));
        let nothing = |record: &Record| {
            *record == Record { resource_version: record.resource_version.clone(), ..Record::default() }
        };
        records.filter(|(_, record)| !nothing(record)).collect()
    }

    /// Until nobody listens any more.
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

    /// Does what is to be done; false: nobody listens any more.
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

    /// Publishes what is configured.
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
                    warn!(entry = %key, error = text, "the API server refuses what is written");
                    self.refused.insert(key.clone(), text);
                }
            }
        }
        let effects = self.writes.answered(self.now(), key, answer);
        self.judge_away().await;
        effects
    }

    pub(super) async fn looked(&mut self, look: Look) {
        // One that is refused says nothing of the others, and the API server is there.
        self.unseen = matches!(look, Err(ApiError::Away(_)));
        self.judge_away().await;
        let Ok(leases) = look else { return };
        let replicas = self.leases.look(self.now(), leases);
        for (instance, version) in replicas.stale {
            let api = self.api.clone();
            // Another replica may have done it.
            tokio::spawn(async move { api.forget(&instance, &version).await.ok() });
        }
        if replicas.alive != self.alive {
            info!(alive = ?replicas.alive, "replicas");
            self.alive.clone_from(&replicas.alive);
            self.writes.alive(replicas.alive.clone());
            self.tell(Input::Replicas { alive: replicas.alive }).await;
        }
    }

    /// Whether the API server can be relied on.
    async fn judge_away(&mut self) {
        let away = self.unseen || self.writes.is_failing();
        if away != self.away {
            self.away = away;
            if away {
                warn!(waiting = self.writes.waiting(), "the API server is away");
            } else {
                info!("the API server is back");
            }
            self.tell(Input::StoreAway(away)).await;
        }
        let waiting = self.writes.waiting();
        let refused = self.refused.iter().next();
        let degraded = match refused {
            _ if away => Some(format!("store: the API server is away, {waiting} entries wait for it")),
            Some((key, text)) => Some(format!("store: the API server refuses entry {key}: {text}")),
            None => None,
        };
        self.outputs.degraded.send_if_modified(|there| {
            let is_news = there.is_some() != degraded.is_some();
            *there = degraded;
            is_news
        });
    }
}
