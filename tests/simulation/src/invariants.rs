//! Checks invariants after each step, by a second and much simpler model of the servers.
//!
//! It records the reports, the open streams of the servers, and the stored records, and compares
//! them with what each server exposes.

mod shown;
mod startup_grace;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use discovery::entries::{Record, Status, StreamId};
use discovery::objects::{Config, Key};
use workload_health::{HealthReport, Report, State};

use super::configuration::{self, NAMESPACE};
use super::disk::Write;
use super::plan::{GROUPS, Kind, Plan};
use super::process::run_of;

/// Maximum number of effects of one input, for each entry.
const EFFECTS: usize = 12;

#[derive(Debug)]
pub struct Invariants {
    pub violation: Option<String>,
    /// Steps of the simulation.
    pub steps: u64,
    /// Inputs and effects of both sides.
    pub inputs: u64,
    pub effects: u64,
    grace: Duration,
    silence: Duration,
    restart_grace: Duration,
    machines: Vec<(Key, Kind)>,
    groups: Vec<Option<usize>>,
    hosts: Vec<usize>,
    sent: Vec<Vec<HealthReport>>,
    states: BTreeMap<(u64, u64), State>,
    streams: BTreeMap<StreamId, Stream>,
    /// What each server exposes.
    seen: BTreeMap<(usize, Key), EntryState>,
    /// When the streams and reports of an entry were last seen, by any server.
    times: BTreeMap<Key, Times>,
    server_started: Duration,
    /// The number of servers.
    replicas: usize,
    /// When a server last had a reason to remove the endpoint. The others learn it later.
    removed: BTreeMap<Key, Duration>,
    /// Start and end of the last time in which each server could not reach the API server.
    isolated: Vec<(Duration, Duration)>,
    is_there: BTreeSet<Key>,
    /// The acknowledged session of each entry.
    acknowledged: BTreeMap<Key, u64>,
    /// When an endpoint was last added or removed.
    moved: Duration,
    /// Whether a hostile peer exists, which may repeat old reports.
    has_hostile_peer: bool,
    /// Entries with a report since the server's start.
    known: BTreeSet<Key>,
    /// Entries that have changed since then, and may or may not have been in an Envoy's endpoints.
    moving: BTreeSet<Key>,
}

#[derive(Debug)]
struct Stream {
    machine: usize,
    replica: usize,
    session: u64,
    has_reported: bool,
    /// Whether the stream belongs to this project's agent, or has received a report.
    may_report: bool,
}

/// The recorded state of an entry.
#[derive(Debug, Default, Clone)]
struct EntryState {
    is_served: bool,
    /// Run and generation of the newest report that took effect.
    order: Option<(u64, u64)>,
    /// Whether the order of reports cannot be checked: a hostile peer repeated one, or an old
    /// stream overtook a new one.
    order_unchecked: bool,
}

#[derive(Debug, Default, Clone)]
struct Times {
    /// When the last report was received, or the last stream that may report was opened.
    last_report_at: Duration,
    /// Since when no stream is open that may report, and since when no stream is open at all.
    no_reporter_since: Option<Duration>,
    no_stream_since: Option<Duration>,
    /// The last time without a stream that may report: its start and its end.
    gap: Option<(Duration, Duration)>,
}

impl Times {
    /// Applies that a stream is open that may report.
    fn end_gap(&mut self, now: Duration) {
        self.gap = self.no_reporter_since.take().map(|since| (since, now)).or(self.gap);
    }
}

impl Invariants {
    /// Returns the initial state.
    pub fn new(plan: &Plan) -> Self {
        let settings = &plan.settings;
        Self {
            violation: None,
            steps: 0,
            inputs: 0,
            effects: 0,
            grace: settings.disconnect_grace,
            silence: settings.heartbeat * 3,
            restart_grace: settings.restart_grace,
            machines: plan.machines.iter().map(|it| (configuration::key(it), it.kind)).collect(),
            groups: plan.machines.iter().map(|it| it.group).collect(),
            hosts: plan.machines.iter().map(|it| it.host).collect(),
            sent: plan.machines.iter().map(|_| Vec::new()).collect(),
            states: BTreeMap::new(),
            streams: BTreeMap::new(),
            seen: BTreeMap::new(),
            times: BTreeMap::new(),
            server_started: Duration::ZERO,
            replicas: plan.replicas,
            removed: BTreeMap::new(),
            isolated: vec![(Duration::ZERO, Duration::ZERO); plan.replicas],
            is_there: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            moved: Duration::ZERO,
            has_hostile_peer: false,
            known: BTreeSet::new(),
            moving: BTreeSet::new(),
        }
    }

    pub fn violation(&mut self, text: impl FnOnce() -> String) {
        self.violation.get_or_insert_with(text);
    }

    /// Returns all reports of a machine in the extended protocol.
    pub fn reports_of(&self, machine: usize) -> &[HealthReport] {
        &self.sent[machine]
    }

    /// Returns when an endpoint was last added or removed.
    pub fn moved(&self) -> Duration {
        self.moved
    }

    /// Returns whether a report in the extended protocol was received on this stream.
    pub fn has_received_report(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(|stream| stream.has_reported)
    }

    pub fn machine_stepped(&mut self, effects: usize) {
        self.stepped(effects, EFFECTS);
    }

    pub fn server_stepped(&mut self, effects: usize) {
        self.stepped(effects, EFFECTS * (1 + self.machines.len()));
    }

    fn stepped(&mut self, effects: usize, most: usize) {
        self.inputs += 1;
        self.effects += u64::try_from(effects).expect("a few");
        if effects > most {
            self.violation(|| format!("{effects} effects of one input"));
        }
    }

    pub fn sent(&mut self, machine: usize, report: &Report) {
        let Report::AppHealth(report) = report else { return };
        self.sent[machine].push(report.clone());
        if let Some(run) = run_of(&report.epoch) {
            self.states.insert((run, report.generation), report.state);
        }
    }

    pub fn server_started(&mut self, now: Duration, replica: usize) {
        self.server_started = now;
        if self.replicas == 1 {
            self.known.clear();
            self.moving.clear();
        }
        self.seen.retain(|(of, _), seen| *of != replica || seen.order_unchecked);
        for (key, _) in self.machines.clone() {
            let seen = self.seen.entry((replica, key.clone())).or_default();
            *seen = EntryState { order_unchecked: seen.order_unchecked, ..EntryState::default() };
            let times = self.times.entry(key).or_default();
            if self.replicas == 1 {
                *times = Times {
                    last_report_at: now,
                    no_reporter_since: Some(now),
                    no_stream_since: Some(now),
                    gap: None,
                };
            }
        }
    }

    /// Applies that a server cannot reach the API server in this time.
    pub fn isolated(&mut self, replica: usize, from: Duration, to: Duration) {
        self.isolated[replica] = (from, to);
    }

    pub fn configured(&mut self, config: &Config) {
        let groups = self.machines.iter().zip(&self.groups).filter(|(_, group)| {
            group.is_none_or(|group| config.groups.contains_key(&Key::new(NAMESPACE, GROUPS[group])))
        });
        let there = groups.filter(|((key, _), group)| group.is_some() || config.entries.contains_key(key));
        self.is_there = there.map(|((key, _), _)| key.clone()).collect();
    }

    pub fn opened(&mut self, now: Duration, stream: StreamId, replica: usize, machine: usize, kind: Kind) {
        let may_report = matches!(kind, Kind::AppHealth | Kind::Hostile);
        self.has_hostile_peer |= kind == Kind::Hostile;
        let is_overtaken = self.streams.iter().any(|(id, it)| *id > stream && it.machine == machine);
        self.streams.insert(stream, Stream { machine, replica, session: 0, has_reported: false, may_report });
        let key = self.machines[machine].0.clone();
        let seen = self.seen.entry((replica, key.clone())).or_default();
        seen.order_unchecked |= is_overtaken || kind == Kind::Hostile;
        let times = self.times.entry(key).or_default();
        times.no_stream_since = None;
        if may_report {
            times.end_gap(now);
            times.last_report_at = now;
        }
    }

    pub fn received(&mut self, now: Duration, stream: StreamId, report: &Report) {
        let Some(stream) = self.streams.get_mut(&stream) else { return };
        stream.may_report = true;
        stream.has_reported |= matches!(report, Report::AppHealth(_));
        let key = &self.machines[stream.machine].0;
        self.known.insert(key.clone());
        if let Report::AppHealth(report) = report
            && Duration::from_millis(report.since_ms) <= now.saturating_sub(self.server_started)
        {
            self.moving.insert(key.clone());
        }
        if let Some(times) = self.times.get_mut(key) {
            times.last_report_at = now;
            times.end_gap(now);
        }
    }

    pub fn closed(&mut self, now: Duration, stream: StreamId) {
        let Some(Stream { machine, .. }) = self.streams.remove(&stream) else { return };
        let key = self.machines[machine].0.clone();
        let others = self.streams.values().filter(|stream| self.machines[stream.machine].0 == key);
        let others: Vec<bool> = others.map(|stream| stream.may_report).collect();
        let Some(times) = self.times.get_mut(&key) else { return };
        if others.is_empty() {
            times.no_stream_since = Some(now);
        }
        if !others.contains(&true) {
            times.no_reporter_since.get_or_insert(now);
        }
    }

    /// Returns the session of a stream, or 0.
    pub fn session_of(&self, stream: StreamId) -> u64 {
        self.streams.get(&stream).map_or(0, |stream| stream.session)
    }

    pub fn accepted(&mut self, stream: StreamId, session: u64) {
        let Some(stream) = self.streams.get_mut(&stream) else { return };
        let before = std::mem::replace(&mut stream.session, session);
        if session != 0 && session < before {
            self.violation(|| format!("session {session} after {before}"));
        }
    }

    /// Checks that an acknowledged report is stored.
    pub fn acknowledged(&mut self, stream: StreamId, epoch: &str, generation: u64, stored: Option<&Record>) {
        let state = run_of(epoch).and_then(|run| self.states.get(&(run, generation)));
        let expected = match state {
            None => return self.violation(|| format!("{epoch}/{generation} was never sent")),
            Some(State::Unknown) => return,
            Some(State::Healthy) => Status::True,
            Some(State::Unhealthy) => Status::False,
        };
        let session = self.streams.get(&stream).map_or(0, |stream| stream.session);
        if let Some(stream) = self.streams.get(&stream) {
            self.acknowledged.insert(self.machines[stream.machine].0.clone(), session);
        }
        let Some(stored) = stored else {
            return self.violation(|| format!("{epoch}/{generation} is acknowledged, nothing is stored"));
        };
        let status = stored.condition.as_ref().map(|condition| condition.status);
        if stored.session != session || !(status == Some(expected) || status == Some(Status::Unknown)) {
            self.violation(|| {
                format!("{epoch}/{generation} of session {session} is acknowledged, stored is {stored:?}")
            });
        }
    }

    /// Forgets everything about the store.
    pub fn emptied(&mut self) {
        self.acknowledged.clear();
    }

    /// Checks that the session of an object that servers share never decreases.
    pub fn session_written(&mut self, key: &Key, before: Option<u64>, after: Option<u64>) {
        if after.is_none() {
            self.acknowledged.remove(key);
        }
        if let (Some(before), Some(after)) = (before, after)
            && after < before
        {
            self.violation(|| format!("{key}: session {after} is written over {before}"));
        }
    }

    /// Checks that the sessions in the store never decrease.
    pub fn committed(&mut self, before: &BTreeMap<Key, Record>, written: &[Write]) {
        let mut sessions: BTreeMap<&Key, u64> =
            before.iter().map(|(key, record)| (key, record.session)).collect();
        for Write { key, record, .. } in written {
            let session = record.as_ref().map_or(0, |record| record.session);
            if record.is_none() {
                self.acknowledged.remove(key);
            }
            let old = sessions.insert(key, session).unwrap_or(0);
            if record.is_some() && session < old {
                self.violation(|| format!("{key}: session {session} is written over {old}"));
            }
        }
    }
}
