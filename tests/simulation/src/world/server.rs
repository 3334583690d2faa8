//! The server: its state machine, its streams, its disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use discovery::debounce::Debounce;
use discovery::entries::{Code, Effect, Entries, Input, StreamCommand, StreamId, Timestamp};
use discovery::objects::Key;
use discovery::snapshot::Snapshot;
use discovery::stream::{AdsStream, Input as Ads};
use workload_health::{Hello, Report};

use super::{Event, Server, World};
use crate::disk::Write;
use crate::injected_bug::InjectedBug;
use crate::network::{End, Packet};

/// The initial wall clock time, 2026-01-02T03:04:05Z.
const START: i64 = 1_767_323_045;
/// The flags `--debounce` and `--debounce-max`.
const DEBOUNCE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(200));

impl World {
    pub(super) fn next_server(&self) -> Option<Duration> {
        let server = self.server.as_ref()?;
        let streams = server.streams.values().filter_map(AdsStream::next_due).min();
        let due = [server.entries.next_due(), server.debounce.due(), server.startup_grace, streams];
        Some(server.started + due.into_iter().flatten().min()?)
    }

    pub(super) fn tick_server(&mut self) {
        let Some(server) = &mut self.server else { return };
        let now = self.now - server.started;
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= now);
        if is_due(server.entries.next_due()) {
            self.step_server(Input::Tick);
        } else if is_due(server.debounce.due())
            || server.startup_grace.take_if(|until| *until <= now).is_some()
        {
            self.publish();
        } else {
            let due = server.streams.iter().find(|(_, it)| is_due(it.next_due())).map(|(id, _)| *id);
            if let Some(stream) = due {
                self.step_stream(stream, Ads::Poll);
            }
        }
    }

    pub(super) fn start_server(&mut self) {
        if self.server.is_some() {
            return;
        }
        self.runs += 1;
        let stored = self.disk.records.clone().into_iter().collect();
        let entries = Entries::new(self.plan.settings.clone(), stored);
        let (run, started) = (self.runs, self.now);
        self.trace(|| format!("server: run {run} starts"));
        let startup_grace = self.disk.records.is_empty().then_some(self.plan.settings.restart_grace);
        self.server = Some(Server {
            run,
            started,
            entries,
            snapshot: Snapshot::default(),
            config: Arc::default(),
            debounce: Debounce::new(DEBOUNCE.0, DEBOUNCE.1),
            startup_grace,
            streams: BTreeMap::new(),
            nonces: 0,
        });
        self.invariants.server_started(self.now);
        self.read_configuration();
        if let Some(server) = &self.server {
            self.invariants.restored(&self.disk.records, server);
        }
        self.publish();
    }

    /// Ends the server at once. Its kernel closes the connections, unless `silently`.
    pub(super) fn end_server(&mut self, empty: bool, silently: bool) {
        self.disk.crash(empty);
        if empty {
            self.invariants.emptied();
        }
        if self.injected_bug == Some(InjectedBug::StoreForgets) {
            self.disk.records.pop_last();
        }
        if self.server.take().is_none() {
            return;
        }
        for stream in self.network.of(|connection| connection.server_open) {
            if silently {
                if let Some(connection) = self.network.get(stream) {
                    connection.down.dead = true;
                }
                self.unanswered(stream, super::LossReason::Gone, &[End::Machine]);
            } else {
                self.send(stream, End::Machine, Packet::End { refused: false });
            }
            self.network.close(stream, End::Server);
        }
    }

    pub(super) fn read_configuration(&mut self) {
        let config = self.configuration.config();
        self.invariants.configured(&config);
        let Some(server) = &mut self.server else { return };
        server.config = config.clone();
        server.debounce.changed(self.now - server.started);
        self.step_server(Input::Config(config));
    }

    /// Returns the server's wall clock time.
    pub(super) fn wall(&self) -> Timestamp {
        let seconds = i64::try_from(self.now.as_secs()).expect("minutes");
        Timestamp::from_seconds(START + seconds + self.wall_offset)
    }

    pub(super) fn step_server(&mut self, input: Input) {
        let wall = self.wall();
        let Some(server) = &mut self.server else { return };
        let is_tick = matches!(input, Input::Tick | Input::Preserved(_));
        let text = (self.trace.is_some() && !matches!(input, Input::Config(_))).then(|| format!("{input:?}"));
        let effects = server.entries.step(self.now - server.started, wall, input);
        self.invariants.server_stepped(effects.len());
        if let Some(text) = text.filter(|_| !is_tick || !effects.is_empty()) {
            self.trace(|| format!("server: {text}"));
        }
        for effect in effects {
            self.trace(|| format!("server:   -> {effect:?}"));
            self.apply_of_server(effect);
        }
        if let Some(server) = &self.server {
            self.invariants.look(self.now, server);
        }
    }

    fn apply_of_server(&mut self, effect: Effect) {
        let Some(server) = &mut self.server else { return };
        let run = server.run;
        match effect {
            Effect::Command { stream, command: StreamCommand::Hello { session, heartbeat, probe } } => {
                server.nonces += 1;
                let nonce = server.nonces.to_string();
                let version = probe.as_ref().map_or("none".to_owned(), |group| group.probe_version.clone());
                let probe = probe.and_then(|group| Some(group.group.probe.as_ref()?.to_json()));
                self.invariants.accepted(stream, session);
                let hello = Hello { session, heartbeat, probe };
                self.send(stream, End::Machine, Packet::Hello { hello, version, nonce });
            }
            Effect::Command { stream, command: StreamCommand::Ack { epoch, generation } } => {
                let machine = self.network.get(stream).map(|connection| connection.machine);
                if let Some(key) = machine.map(|machine| self.key(machine)) {
                    self.invariants.acknowledged(stream, &epoch, generation, self.disk.records.get(&key));
                }
                self.send(stream, End::Machine, Packet::Ack(format!("{epoch}/{generation}")));
            }
            Effect::Command { stream, command: StreamCommand::Close { code, .. } } => {
                let refused = matches!(code, Code::InvalidArgument | Code::PermissionDenied);
                self.invariants.closed(self.now, stream);
                self.send(stream, End::Machine, Packet::End { refused });
                self.network.close(stream, End::Server);
            }
            Effect::Write { key, write, record, .. } => {
                let record = record.map(|record| *record);
                if self.disk.write(Write { key, number: write, record }) {
                    let at = self.now + self.disk_delay();
                    self.at(at, Event::Commit { server: run });
                }
            }
            Effect::Changed { .. } => {
                server.debounce.changed(self.now - server.started);
            }
            Effect::Event(_) => {}
        }
    }

    fn disk_delay(&mut self) -> Duration {
        let (from, to) = self.plan.disk;
        self.random.millis(from, to)
    }

    pub(super) fn commit(&mut self, server: u64) {
        if self.server.as_ref().is_none_or(|running| running.run != server) {
            return;
        }
        if self.now < self.disk_full_until {
            return self.at(self.disk_full_until, Event::Commit { server });
        }
        let before = self.disk.records.clone();
        let written = self.disk.commit();
        self.invariants.committed(&before, &written);
        let at = self.now + self.disk_delay();
        for Write { key, number, .. } in written {
            self.at(at, Event::Stored { server, key, write: number });
        }
    }

    pub(super) fn stored(&mut self, server: u64, key: Key, write: u64) {
        if self.server.as_ref().is_some_and(|running| running.run == server) {
            self.step_server(Input::Stored { key, write });
        }
    }

    pub(super) fn arrive_at_server(&mut self, stream: StreamId, packet: Packet) {
        let run = self.server.as_ref().map(|server| server.run);
        let Some(connection) = self.network.get(stream) else { return };
        if Some(connection.server) != run || !connection.server_open {
            return;
        }
        let machine = connection.machine;
        match packet {
            Packet::First(node) => {
                connection.read = true;
                let plan = &self.plan.machines[machine];
                self.invariants.opened(self.now, stream, machine, plan.kind);
                let peer = format!("{}:40000", super::configuration::address(plan.host));
                let peer = peer.parse().expect("an address and a port");
                self.step_server(Input::Opened { stream, peer, identity: None, node });
            }
            Packet::Report(report) => self.reported(stream, report),
            Packet::Answer { version, refusal: None } => {
                self.step_server(Input::ProbeAcked { stream, version });
            }
            Packet::Answer { refusal: Some(text), .. } => {
                self.step_server(Input::ProbeNacked { stream, text });
            }
            Packet::Fin if self.injected_bug == Some(InjectedBug::NeverClosed) => {}
            Packet::Fin => self.server_lost(stream),
            Packet::Request(request) => {
                if let (Some(server), Some(envoy)) =
                    (&mut self.server, machine.checked_sub(self.processes.len()))
                {
                    let variant = self.plan.envoys[envoy].0;
                    server.streams.entry(stream).or_insert_with(|| AdsStream::new(variant, None));
                    self.step_stream(stream, Ads::Request(request));
                }
            }
            Packet::Hello { .. } | Packet::Ack(_) | Packet::Response(..) | Packet::End { .. } => {}
        }
    }

    /// Passes a report to the state machine.
    pub(super) fn reported(&mut self, stream: StreamId, report: Report) {
        self.invariants.received(self.now, stream, &report);
        if let Report::AppHealth(report) = &report
            && self.injected_bug == Some(InjectedBug::AcknowledgeAtOnce)
        {
            let machine = self.network.get(stream).map(|connection| connection.machine);
            if let Some(key) = machine.map(|machine| self.key(machine)) {
                let record = self.disk.records.get(&key);
                self.invariants.acknowledged(stream, &report.epoch, report.generation, record);
            }
            self.send(stream, End::Machine, Packet::Ack(report.acknowledgement()));
        }
        self.step_server(Input::Report { stream, report });
    }

    /// Handles the loss of a connection at the server's end.
    pub(super) fn server_lost(&mut self, stream: StreamId) {
        self.invariants.closed(self.now, stream);
        if let Some(server) = &mut self.server {
            server.streams.remove(&stream);
        }
        self.send(stream, End::Machine, Packet::End { refused: false });
        self.network.close(stream, End::Server);
        self.step_server(Input::Closed { stream });
    }
}
