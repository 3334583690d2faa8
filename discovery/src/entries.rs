//! The life of entries: who may report on which, what a report, a lost stream and silence do, what is stored and what Envoys may see.
//!
//! Pure: time comes in with each step, effects go out. Not here: sockets, stores, how endpoints are encoded.
//!
//! [`Entries`] takes an [`Input`] and answers with [`Effect`]s. Its parts: `registration` binds streams, `sessions` chooses the one that reports,
//! `reports` applies what it says, `acknowledgements` answers when it is stored, `departures` lets streams go, `deadlines` does what follows from silence, `configuration` and `observed` what others change, `settle` compares what is with
//! what was stored and shown.

mod acknowledgements;
mod configuration;
mod content;
mod deadlines;
mod departures;
mod entry;
mod event;
mod name;
mod node;
mod observed;
mod protocol;
mod record;
mod registration;
mod reports;
mod sessions;
mod settings;
mod settle;
mod stream;
mod timestamp;
mod view;
mod workload;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use deadlines::Deadlines;
use entry::Entry;
use stream::{Stream, Wait};

use super::objects::{Config, Key};

pub use event::{Event, Gone, Refusal};
pub use node::{Identity, Node};
pub use protocol::{Code, Effect, Input, Report, StreamId};
pub use record::{Auto, Before, Condition, Reason, Record, Status};
pub use settings::{PeerAddressCheck, Settings, UnknownPolicy};
pub use timestamp::Timestamp;
pub use view::{AgentView, ConditionView, WorkloadView};
pub use workload::Workload;

/// All entries and the streams of their agents.
#[derive(Debug)]
pub struct Entries {
    /// Its `restart_grace` is until when after the start; a pause of the process begins it anew.
    settings: Settings,
    restart_grace: Duration,
    /// `app-health/<instance>`.
    controller: String,
    config: Arc<Config>,
    is_configured: bool,
    /// Whether some service may keep its last endpoint.
    may_keep: bool,
    entries: BTreeMap<Key, Entry>,
    streams: HashMap<StreamId, Stream>,
    waiting: BTreeMap<Wait, BTreeSet<StreamId>>,
    deadlines: Deadlines,
    /// Entries that are gone but for the last endpoint that they may be.
    lingering: BTreeSet<Key>,
    kept: BTreeSet<Key>,
    alive: Option<BTreeSet<String>>,
    is_store_away: bool,
    writes: u64,
    at: At,
    effects: Vec<Effect>,
}

/// When a step happens.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    /// Since the process' start; never goes back.
    now: Duration,
    /// For people only.
    wall: Timestamp,
}

impl Entries {
    /// The entries as the store has them. Time begins at 0, and so does the grace for those that have not come back.
    pub fn new(settings: Settings, stored: Vec<(Key, Record)>) -> Self {
        let mut entries = Self {
            controller: format!("app-health/{}", settings.instance),
            restart_grace: settings.restart_grace,
            settings,
            config: Arc::default(),
            is_configured: false,
            may_keep: false,
            entries: BTreeMap::new(),
            streams: HashMap::new(),
            waiting: BTreeMap::new(),
            deadlines: Deadlines::default(),
            lingering: BTreeSet::new(),
            kept: BTreeSet::new(),
            alive: None,
            is_store_away: false,
            writes: 0,
            at: At::default(),
            effects: Vec::new(),
        };
        for (key, record) in stored {
            let entry = Entry { is_restored: true, ..Entry::stored(record) };
            entries.entries.insert(key.clone(), entry);
            entries.miss(&key, entries.settings.restart_grace);
        }
        entries
    }

    /// One thing happened at `now`, which never goes back; `wall` is only shown.
    pub fn step(&mut self, now: Duration, wall: Timestamp, input: Input) -> Vec<Effect> {
        self.at = At { now: now.max(self.at.now), wall };
        match input {
            Input::Config(config) => self.configure(config),
            Input::Opened { stream, peer, identity, node } => self.open(stream, peer, identity, *node),
            Input::Report { stream, report } => self.report(stream, report),
            Input::ProbeAcked { stream, version } => self.probe_answered(stream, Ok(version)),
            Input::ProbeNacked { stream, text } => self.probe_answered(stream, Err(text)),
            Input::Closed { stream } => self.close(stream),
            Input::Stored { key, write } => self.stored(&key, write),
            Input::Observed { key, record } => self.observe(key, record.map(|record| *record)),
            Input::Replicas { alive } => self.replicas(alive),
            Input::StoreAway(is_away) => self.store_away(is_away),
            Input::Kept(kept) => self.keep(kept),
            Input::Resumed => self.resume(),
            Input::Tick => {}
        }
        self.pass_deadlines();
        mem::take(&mut self.effects)
    }

    /// When the next [`Input::Tick`] is due, in the time of [`Entries::step`].
    pub fn next_due(&self) -> Option<Duration> {
        self.deadlines.next()
    }

    /// All entries that Envoys may see, by key.
    pub fn workloads(&self) -> impl Iterator<Item = Workload> {
        self.entries.iter().filter_map(|(key, entry)| entry.workload(key, &self.settings))
    }

    /// All entries as the operator sees them, by key.
    pub fn view(&self, now: Duration) -> Vec<WorkloadView> {
        let view = |(key, entry): (&Key, &Entry)| {
            view::of(key, entry, &self.settings, self.kept.contains(key), now, &self.streams)
        };
        self.entries.iter().filter_map(view).collect()
    }

    /// How many entries have the condition True, False, Unknown, and none.
    pub fn counts(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for entry in self.entries.values().filter(|entry| entry.spec().is_some()) {
            let status = entry.record.condition.as_ref().map(|condition| condition.status);
            counts[match status {
                Some(Status::True) => 0,
                Some(Status::False) => 1,
                Some(Status::Unknown) => 2,
                None => 3,
            }] += 1;
        }
        counts
    }

    fn note(&mut self, event: Event) {
        self.effects.push(Effect::Note(event));
    }
}

#[cfg(test)]
mod tests;
