//! The state machine of workload entries. It decides which stream may report on which entry, how
//! reports, lost streams and silence change an entry's condition, what is stored, and which
//! endpoints Envoys see.
//!
//! The module does no I/O: each step gets the time as an argument and returns effects. Sockets,
//! stores and the encoding of endpoints are elsewhere.
//!
//! [`Entries::step`] takes an [`Input`] and returns [`Effect`]s. An entry is made of machines with
//! state of their own: `session` (which stream reports), `liveness` (deadlines for streams, reports
//! and results), `storage` (writes and acknowledgements) and `retention` (how long a silent entry
//! stays); `streams` and `timers` are those of all entries. The other modules apply one kind of input
//! each, and `reconcile` emits the writes, pushes and events that follow from a change.

mod acknowledgements;
mod configuration;
mod content;
mod deadlines;
mod disconnects;
mod entry;
mod event;
mod liveness;
mod name;
mod node;
mod observed;
mod ownership;
mod protocol;
mod reconcile;
mod record;
mod registration;
mod registration_limits;
mod reports;
mod retention;
mod self_preservation;
mod session;
mod sessions;
mod settings;
mod storage;
mod streams;
mod timers;
mod timestamp;
mod view;
mod workload;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use entry::Entry;
use ownership::Ownership;
use registration_limits::Registrations;
use retention::SnapshotNeeds;
use streams::Streams;
use timers::Timers;

use super::objects::{Config, Key};

pub use event::{DeletionReason, Event, RejectionReason, ReportOutcome};
pub use node::{Identity, Node, StreamId};
pub use protocol::{Code, Effect, Input, StreamCommand};
pub use record::{Auto, Before, Condition, ConditionReason, Record, Status};
pub use settings::{PeerAddressCheck, RemovalLimits, Settings, UnknownPolicy};
pub use timestamp::Timestamp;
pub use view::{AgentView, ConditionView, WorkloadView};
pub use workload::{Presence, Preserved, Workload};

/// All entries and the streams of their agents.
#[derive(Debug)]
pub struct Entries {
    /// Here `restart_grace` is the end of the grace period, as a time since the start; a suspension
    /// of the process restarts the period.
    settings: Settings,
    restart_grace_length: Duration,
    ownership: Ownership,
    config: Arc<Config>,
    is_configured: bool,
    /// True if the policy of some service may keep its last endpoint.
    may_keep: bool,
    entries: BTreeMap<Key, Entry>,
    /// Counts the registrants of `entries`.
    registrations: Registrations,
    streams: Streams,
    timers: Timers,
    snapshot_needs: SnapshotNeeds,
    is_store_unreachable: bool,
    writes: u64,
    /// Wall-clock time at the start of the process, as of the first step.
    started_at: Option<Timestamp>,
    at: StepTime,
    effects: Vec<Effect>,
}

/// Time of a step.
#[derive(Clone, Copy, Debug, Default)]
struct StepTime {
    /// Monotonic time since the start of the process.
    now: Duration,
    /// Wall-clock time, used only in what is stored and shown.
    wall: Timestamp,
    /// Wall-clock time of the first step and the time that has passed since, for comparisons with
    /// stored timestamps. A change of the system clock does not change it.
    steady: Timestamp,
}

impl Entries {
    /// Creates the state from the stored entries. Time starts at 0, and so does the grace period
    /// for agents that have not reconnected.
    pub fn new(settings: Settings, stored: Vec<(Key, Record)>) -> Self {
        let mut entries = Self {
            ownership: Ownership::new(&settings),
            restart_grace_length: settings.restart_grace,
            settings,
            config: Arc::default(),
            is_configured: false,
            may_keep: false,
            entries: BTreeMap::new(),
            registrations: Registrations::default(),
            streams: Streams::default(),
            timers: Timers::default(),
            snapshot_needs: SnapshotNeeds::default(),
            is_store_unreachable: false,
            writes: 0,
            started_at: None,
            at: StepTime::default(),
            effects: Vec::new(),
        };
        for (key, record) in stored {
            let mut entry = Entry::stored(record);
            entries.registrations.replace(&key.namespace, None, entry.registrant.as_ref());
            entry.liveness.restarted();
            if entries.ownership.owns(&entry.record) {
                entry.liveness.await_restart(entries.settings.restart_grace, entry.record.session > 0);
                entry.schedule(&mut entries.timers, &key);
            }
            entries.entries.insert(key, entry);
        }
        entries
    }

    /// Processes one input. `now` must not decrease; `wall` is only stored and shown.
    pub fn step(&mut self, now: Duration, wall: Timestamp, input: Input) -> Vec<Effect> {
        let now = now.max(self.at.now);
        let steady = self.steady_time(now, wall);
        if self.started_at.is_none() {
            self.started_at = Some(steady.minus(now));
            self.move_future_times(steady);
        }
        self.at = StepTime { now, wall, steady };
        match input {
            Input::Config(config) => self.configure(config),
            Input::Opened { stream, peer, identity, node } => self.open(stream, peer, identity, *node),
            Input::Report { stream, report } => self.report(stream, report),
            Input::ProbeAcked { stream, version } => self.probe_answered(stream, Ok(version)),
            Input::ProbeNacked { stream, text } => self.probe_answered(stream, Err(text)),
            Input::Closed { stream } => self.close(stream),
            Input::Stored { key, write } => self.stored(&key, write),
            Input::Observed { key, record } => self.observe(key, record.map(|record| *record)),
            Input::Replicas { alive, released } => self.set_live_instances(alive, &released),
            Input::EndReporters => self.end_reporters(),
            Input::StoreUnreachable(is_away) => self.set_store_unreachable(is_away),
            Input::Preserved(preserved) => self.set_preserved(preserved),
            Input::Release { namespace, group } => self.release(namespace.as_deref(), group.as_deref()),
            Input::ProcessResumed => self.resume(),
            Input::Tick => {}
        }
        self.pass_deadlines();
        mem::take(&mut self.effects)
    }

    /// Moves the times of stored entries that became silent, if some are in the future: the system clock
    /// was set back before this process started. The newest becomes `now`, the intervals between them
    /// stay, and from here on they age.
    fn move_future_times(&mut self, now: Timestamp) {
        let mut silent: Vec<&mut Entry> =
            self.entries.values_mut().filter(|entry| entry.is_silent()).collect();
        let newest = silent.iter().filter_map(|entry| entry.last_transition()).max();
        let ahead = newest.map_or(0, |newest| newest.seconds().saturating_sub(now.seconds()));
        if ahead > 0 {
            silent.iter_mut().for_each(|entry| entry.move_transition(ahead));
        }
    }

    /// Returns the time for [`SnapshotSettings::now`](crate::snapshot::SnapshotSettings): `wall`, without
    /// the changes of the system clock since the first step.
    pub fn steady_time(&self, now: Duration, wall: Timestamp) -> Timestamp {
        self.started_at.map_or(wall, |started_at| started_at.plus(now))
    }

    /// Returns when the next [`Input::Tick`] is due, on the clock of [`Entries::step`].
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// Returns all entries that Envoys may see, sorted by key.
    pub fn workloads(&self) -> impl Iterator<Item = Workload> {
        self.entries.iter().filter_map(|(key, entry)| entry.workload(key, &self.settings))
    }

    /// Returns the entries of `/debug/workloads`, sorted by key.
    pub fn view(&self, now: Duration) -> Vec<WorkloadView> {
        let view = |(key, entry): (&Key, &Entry)| {
            view::of(key, entry, &self.settings, self.snapshot_needs.get(key), now, &self.streams)
        };
        self.entries.iter().filter_map(view).collect()
    }

    /// Returns the numbers of entries whose condition is True, False, Unknown and absent.
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

    fn send(&mut self, stream: StreamId, command: StreamCommand) {
        self.effects.push(Effect::Command { stream, command });
    }

    fn emit(&mut self, event: Event) {
        self.effects.push(Effect::Event(event));
    }
}

#[cfg(test)]
mod tests;
