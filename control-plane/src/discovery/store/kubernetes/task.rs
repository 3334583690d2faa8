//! The task: watches, wishes, answers and looks come in, one after the other; requests and outputs go out.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::api::{Api, ApiError};
use super::configuration::Configuration;
use super::decision::Writer;
use super::leases::Leases;
use super::replica::Look;
use super::watch::{Kind, Seen, Watched, Watches};
use super::writes::{Answer, Effect, Writes};
use super::{Output, Write, object};
use crate::discovery::entries::{Input, Record};
use crate::discovery::objects::Key;

/// Changes of the configuration within so long make one.
const CONFIGURATION: Duration = Duration::from_millis(100);

/// All that it has.
pub(super) struct Task {
    api: Api,
    /// Watches that have not listed yet.
    waiting: usize,
    /// What the list that is under way has brought.
    listings: BTreeMap<(Kind, Option<String>), BTreeSet<Key>>,
    /// The last error of each watch that is broken.
    broken: BTreeMap<(Kind, Option<String>), String>,
    configuration: Configuration,
    reconfigure: Option<Instant>,
    errors: Vec<String>,
    writes: Writes,
    requests: JoinSet<(Key, Answer, Option<ApiError>)>,
    /// Last refusals, by entry: said once.
    refused: BTreeMap<Key, String>,
    leases: Leases,
    alive: BTreeSet<String>,
    /// The last look failed.
    unseen: bool,
    away: bool,
    started: Instant,
    outputs: mpsc::Sender<Output>,
}

impl Task {
    pub(super) fn new(
        api: Api,
        instance: String,
        per_second: NonZeroU32,
        waiting: usize,
        outputs: mpsc::Sender<Output>,
    ) -> Self {
        let writer = Writer { instance: instance.clone(), alive: BTreeSet::from([instance.clone()]) };
        Self {
            api,
            waiting,
            listings: BTreeMap::new(),
            broken: BTreeMap::new(),
            configuration: Configuration::default(),
            reconfigure: Some(Instant::now()),
            errors: Vec::new(),
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
        self.waiting > 0
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

    /// Until nobody has wishes any more.
    pub(super) async fn run(
        &mut self,
        mut watches: Watches,
        mut wishes: mpsc::UnboundedReceiver<Write>,
        mut looks: mpsc::Receiver<Look>,
    ) {
        let mut effects = Vec::new();
        loop {
            if !self.carry_out(std::mem::take(&mut effects)).await {
                return;
            }
            let due = [self.writes.next_due().map(|due| self.started + due), self.reconfigure];
            let due = due.into_iter().flatten().min();
            effects = tokio::select! {
                wish = wishes.recv() => {
                    let Some(Write { key, write, wish }) = wish else { return };
                    self.writes.wish(key, write, wish);
                    Vec::new()
                }
                Some(watched) = watches.next() => self.watched(watched),
                Some(Ok((key, answer, error))) = self.requests.join_next() => self.answered(key, answer, error).await,
                Some(look) = looks.recv() => { self.looked(look).await; Vec::new() }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Vec::new(),
            };
        }
    }

    async fn tell(&self, output: Output) -> bool {
        self.outputs.send(output).await.is_ok()
    }

    /// Does what is to be done; false: nobody listens any more.
    async fn carry_out(&mut self, mut effects: Vec<Effect>) -> bool {
        effects.extend(self.writes.step(self.now()));
        for effect in effects {
            let input = match effect {
                Effect::Send(key, request) => {
                    let api = self.api.clone();
                    self.requests.spawn(async move {
                        let (answer, error) = api.entry(&key, &request).await;
                        (key, answer, error)
                    });
                    continue;
                }
                Effect::Changed(key) => {
                    self.entry_configured(&key);
                    continue;
                }
                Effect::Stored(key, write) => {
                    self.refused.remove(&key);
                    Input::Stored { key, write }
                }
                Effect::Observed(key, record) => Input::Observed { key, record },
            };
            if !self.tell(Output::Input(input)).await {
                return false;
            }
        }
        if self.reconfigure.is_some_and(|at| at <= Instant::now()) {
            self.reconfigure = None;
            if !self.tell(Output::Input(Input::Config(self.configuration.config()))).await {
                return false;
            }
            let errors = self.configuration.errors();
            if errors != self.errors {
                for error in errors.iter().filter(|error| !self.errors.contains(error)) {
                    warn!("{error}");
                }
                self.errors.clone_from(&errors);
                return self.tell(Output::ConfigErrors(errors)).await;
            }
        }
        true
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

    fn watched(&mut self, (kind, scope, seen): Watched) -> Vec<Effect> {
        let place = (kind, scope);
        if let Seen::Broken(error) = seen {
            if self.broken.get(&place) != Some(&error) {
                warn!(kind = kind.words().0, error, "the watch broke, and is taken up again");
                self.broken.insert(place, error);
            }
            return Vec::new();
        }
        if self.broken.remove(&place).is_some() {
            info!(kind = kind.words().0, "the watch goes on");
        }
        match seen {
            Seen::Listing => {
                self.listings.insert(place, BTreeSet::new());
                Vec::new()
            }
            Seen::Complete => {
                let listed = self.listings.remove(&place).unwrap_or_default();
                self.waiting = self.waiting.saturating_sub(1);
                self.complete(kind, place.1.as_deref(), &listed);
                Vec::new()
            }
            Seen::Listed(object) => {
                if let (Some(listed), Some(key)) = (self.listings.get_mut(&place), object::key(&object)) {
                    listed.insert(key);
                }
                self.changed(kind, object, true)
            }
            Seen::Is(object) => self.changed(kind, object, true),
            Seen::Gone(object) => self.changed(kind, object, false),
            Seen::Broken(_) => Vec::new(),
        }
    }

    fn complete(&mut self, kind: Kind, scope: Option<&str>, listed: &BTreeSet<Key>) {
        if kind == Kind::Entry {
            self.writes.listed(scope, listed);
            return;
        }
        for key in self.configuration.missing(kind, scope, listed) {
            self.configured(kind, &key, None);
        }
    }

    fn changed(&mut self, kind: Kind, object: Value, is_there: bool) -> Vec<Effect> {
        let Some(key) = object::key(&object) else { return Vec::new() };
        match (kind, is_there) {
            (Kind::Entry, true) => self.writes.seen(key, object),
            (Kind::Entry, false) => self.writes.gone(key, object),
            (_, is_there) => {
                self.configured(kind, &key, is_there.then_some(&object));
                Vec::new()
            }
        }
    }

    async fn answered(&mut self, key: Key, answer: Answer, error: Option<ApiError>) -> Vec<Effect> {
        if let Some(error) = error {
            let text = error.to_string();
            if self.refused.get(&key) != Some(&text) && answer == Answer::Refused {
                warn!(entry = %key, error = text, "the API server refuses what is written");
                self.refused.insert(key.clone(), text);
            }
            self.tell(Output::Error).await;
        }
        let effects = self.writes.answered(self.now(), key, answer);
        self.judge_away().await;
        effects
    }

    async fn looked(&mut self, look: Look) {
        self.unseen = look.is_err();
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
            self.tell(Output::Input(Input::Replicas { alive: replicas.alive })).await;
        }
    }

    /// Whether the API server can be relied on.
    async fn judge_away(&mut self) {
        let away = self.unseen || self.writes.is_failing();
        if away != self.away {
            self.away = away;
            warn!(away, waiting = self.writes.waiting(), "the API server");
            self.tell(Output::Input(Input::StoreAway(away))).await;
        }
    }
}
