//! A server: its state machine, its streams, its disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use discovery::debounce::Debounce;
use discovery::entries::{Code, Effect, Entries, Input, Settings, StreamCommand, StreamId, Timestamp};
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
    /// Returns when the next server is due.
    pub(super) fn next_server(&self) -> Option<Duration> {
        (0..self.servers.len()).filter_map(|replica| self.next_of_server(replica)).min()
    }

    /// Returns which server has this run, if it is running.
    pub(super) fn replica_of(&self, run: u64) -> Option<usize> {
        self.servers.iter().position(|server| server.as_ref().is_some_and(|server| server.run == run))
    }

    /// Returns the run of a server that a new connection reaches: one that is ready, or sometimes another
    /// one, which the load balancer does not know yet.
    pub(super) fn pick_server(&mut self) -> Option<u64> {
        let running: Vec<&Server> = self.servers.iter().flatten().collect();
        if running.len() < 2 {
            return running.first().map(|server| server.run);
        }
        let is_ready = |server: &&&Server| server.shared.as_ref().is_none_or(|shared| !shared.is_isolated());
        let ready: Vec<u64> = running.iter().filter(is_ready).map(|server| server.run).collect();
        let running: Vec<u64> = running.iter().map(|server| server.run).collect();
        let from = if ready.is_empty() || self.random.chance(0.1) { running } else { ready };
        Some(self.random.pick(&from))
    }

    pub(super) fn next_of_server(&self, replica: usize) -> Option<Duration> {
        let server = self.servers[replica].as_ref()?;
        let streams = server.streams.values().filter_map(AdsStream::next_due).min();
        let store = server.shared.as_ref().and_then(|shared| shared.writer.next_due());
        let due = [server.entries.next_due(), server.debounce.due(), server.startup_grace, streams, store];
        Some(server.started + due.into_iter().flatten().min()?)
    }

    pub(super) fn tick_server(&mut self, replica: usize) {
        let Some(server) = &mut self.servers[replica] else { return };
        let now = self.now - server.started;
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= now);
        if is_due(server.entries.next_due()) {
            self.step_server(replica, Input::Tick);
        } else if is_due(server.debounce.due())
            || server.startup_grace.take_if(|until| *until <= now).is_some()
        {
            self.publish(replica);
        } else if server.shared.as_ref().is_some_and(|shared| is_due(shared.writer.next_due())) {
            self.write_to_api_server(replica);
        } else {
            let due = server.streams.iter().find(|(_, it)| is_due(it.next_due())).map(|(id, _)| *id);
            if let Some(stream) = due {
                self.step_stream(replica, stream, Ads::Poll);
            }
        }
    }

    pub(super) fn start_server(&mut self, replica: usize) {
        if self.servers[replica].is_some() {
            return;
        }
        let is_shared = self.plan.replicas > 1;
        // A server that shares its store waits for the API server.
        if self.now < self.isolated[replica].1 {
            return self.at(self.isolated[replica].1, Event::StartServer(replica));
        }
        self.runs += 1;
        let shared = is_shared.then(|| self.open_shared_store(replica));
        let stored = match &shared {
            Some(shared) => shared.stored(),
            None => self.disk.records.clone(),
        };
        let instance = self.instances[replica].clone();
        let settings = Settings { instance, shared: is_shared, ..self.plan.settings.clone() };
        let startup_grace = stored.is_empty().then_some(settings.restart_grace);
        let entries = Entries::new(settings, stored.clone().into_iter().collect());
        let (run, started) = (self.runs, self.now);
        self.trace(|| format!("server {replica}: run {run} starts"));
        self.servers[replica] = Some(Server {
            run,
            started,
            entries,
            shared,
            snapshot: Snapshot::default(),
            config: Arc::default(),
            debounce: Debounce::new(DEBOUNCE.0, DEBOUNCE.1),
            startup_grace,
            streams: BTreeMap::new(),
            nonces: 0,
        });
        self.invariants.server_started(self.now, replica);
        self.read_configuration(replica);
        if let Some(server) = &self.servers[replica] {
            self.invariants.restored(&stored, server);
        }
        self.publish(replica);
        if is_shared {
            self.read_leases(run);
        }
    }

    /// Ends a server at once. Its kernel closes the connections, unless `silently`.
    pub(super) fn end_server(&mut self, replica: usize, empty: bool, silently: bool) {
        self.disk.crash(empty);
        if empty {
            self.invariants.emptied();
        }
        if self.injected_bug == Some(InjectedBug::StoreForgets) {
            self.disk.records.pop_last();
        }
        let Some(ended) = self.servers[replica].take() else { return };
        for stream in self.network.of(|connection| connection.server_open && connection.server == ended.run) {
            self.invariants.closed(self.now, stream);
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

    pub(super) fn read_configuration(&mut self, replica: usize) {
        let config = self.configuration.config();
        self.invariants.configured(&config);
        let Some(server) = &mut self.servers[replica] else { return };
        let config = server.shared.as_ref().map_or(config.clone(), |shared| shared.configuration(&config));
        server.config = config.clone();
        server.debounce.changed(self.now - server.started);
        self.step_server(replica, Input::Config(config));
    }

    /// Returns the server's wall clock time.
    pub(super) fn wall(&self) -> Timestamp {
        let seconds = i64::try_from(self.now.as_secs()).expect("minutes");
        Timestamp::from_seconds(START + seconds + self.wall_offset)
    }

    pub(super) fn step_server(&mut self, replica: usize, input: Input) {
        let wall = self.wall();
        let Some(server) = &mut self.servers[replica] else { return };
        let is_tick = matches!(input, Input::Tick | Input::Preserved(_));
        let text = (self.trace.is_some() && !matches!(input, Input::Config(_))).then(|| format!("{input:?}"));
        let effects = server.entries.step(self.now - server.started, wall, input);
        self.invariants.server_stepped(effects.len());
        if let Some(text) = text.filter(|_| !is_tick || !effects.is_empty()) {
            self.trace(|| format!("server {replica}: {text}"));
        }
        for effect in effects {
            self.trace(|| format!("server {replica}:   -> {effect:?}"));
            self.apply_of_server(replica, effect);
        }
        if let Some(server) = &self.servers[replica] {
            self.invariants.look(self.now, replica, server);
        }
    }

    fn apply_of_server(&mut self, replica: usize, effect: Effect) {
        let Some(server) = &mut self.servers[replica] else { return };
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
                    self.check_acknowledged(stream, &key, &epoch, generation);
                }
                self.send(stream, End::Machine, Packet::Ack(format!("{epoch}/{generation}")));
            }
            Effect::Command { stream, command: StreamCommand::Close { code, .. } } => {
                let refused = matches!(code, Code::InvalidArgument | Code::PermissionDenied);
                self.invariants.closed(self.now, stream);
                self.send(stream, End::Machine, Packet::End { refused });
                self.network.close(stream, End::Server);
            }
            Effect::Write { key, write, record, session } if let Some(shared) = &mut server.shared => {
                shared.set_desired(key, write, record, session);
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
        if self.replica_of(server).is_none() {
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
        if let Some(replica) = self.replica_of(server) {
            self.step_server(replica, Input::Stored { key, write });
        }
    }

    pub(super) fn arrive_at_server(&mut self, stream: StreamId, packet: Packet) {
        let Some(connection) = self.network.get(stream).filter(|it| it.server_open) else { return };
        let (machine, run) = (connection.machine, connection.server);
        let Some(replica) = self.replica_of(run) else { return };
        match packet {
            Packet::First(node) => {
                if let Some(connection) = self.network.get(stream) {
                    connection.read = true;
                }
                let plan = &self.plan.machines[machine];
                self.invariants.opened(self.now, stream, replica, machine, plan.kind);
                let peer = format!("{}:40000", super::configuration::address(plan.host));
                let peer = peer.parse().expect("an address and a port");
                self.step_server(replica, Input::Opened { stream, peer, identity: None, node });
            }
            Packet::Report(report) => self.reported(replica, stream, report),
            Packet::Answer { version, refusal: None } => {
                self.step_server(replica, Input::ProbeAcked { stream, version });
            }
            Packet::Answer { refusal: Some(text), .. } => {
                self.step_server(replica, Input::ProbeNacked { stream, text });
            }
            Packet::Fin if self.injected_bug == Some(InjectedBug::NeverClosed) => {}
            Packet::Fin => self.server_lost(stream),
            Packet::Request(request) => {
                if let (Some(server), Some(envoy)) =
                    (&mut self.servers[replica], machine.checked_sub(self.processes.len()))
                {
                    let variant = self.plan.envoys[envoy].0;
                    server.streams.entry(stream).or_insert_with(|| AdsStream::new(variant, None));
                    self.step_stream(replica, stream, Ads::Request(request));
                }
            }
            Packet::Hello { .. } | Packet::Ack(_) | Packet::Response(..) | Packet::End { .. } => {}
        }
    }

    /// Passes a report to the state machine.
    pub(super) fn reported(&mut self, replica: usize, stream: StreamId, report: Report) {
        self.invariants.received(self.now, stream, &report);
        if let Report::AppHealth(report) = &report
            && self.injected_bug == Some(InjectedBug::AcknowledgeAtOnce)
        {
            let machine = self.network.get(stream).map(|connection| connection.machine);
            if let Some(key) = machine.map(|machine| self.key(machine)) {
                self.check_acknowledged(stream, &key, &report.epoch, report.generation);
            }
            self.send(stream, End::Machine, Packet::Ack(report.acknowledgement()));
        }
        self.step_server(replica, Input::Report { stream, report });
    }

    /// Handles the loss of a connection at the server's end.
    pub(super) fn server_lost(&mut self, stream: StreamId) {
        self.invariants.closed(self.now, stream);
        let Some(run) = self.network.get(stream).map(|connection| connection.server) else { return };
        self.send(stream, End::Machine, Packet::End { refused: false });
        self.network.close(stream, End::Server);
        let Some(replica) = self.replica_of(run) else { return };
        if let Some(server) = &mut self.servers[replica] {
            server.streams.remove(&stream);
        }
        self.step_server(replica, Input::Closed { stream });
    }
}
