//! The store that several servers share: each has its own view of the API server, which is late, and
//! writes with optimistic concurrency. The parts that decide are the real ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use discovery::entries::{Input, Record, StreamId};
use discovery::objects::{Config, Key};
use discovery_server::store::kubernetes::decision::{DesiredState, ReplicaContext};
use discovery_server::store::kubernetes::entry_writer::{Effect, EntryWriter};
use discovery_server::store::kubernetes::leases::{Isolation, Leases, READ_INTERVAL, RENEWAL};
use discovery_server::store::kubernetes::object;
use discovery_server::store::kubernetes::request::{ApiError, Request};
use discovery_server::store::kubernetes::watched_config::{Kind, WatchedConfig};
use serde_json::Value;

use super::{Event, World};
use crate::api_server::WatchEvent;
use crate::configuration;
use crate::injected_bug::InjectedBug;

/// The deadline of a request.
const DEADLINE: Duration = Duration::from_secs(4);
/// Longest time for one way to the API server, in milliseconds, and from its store to a watch.
const LATENCY: u64 = 200;
const WATCH_LATENCY: u64 = 500;
const WRITES_PER_SECOND: NonZeroU32 = NonZeroU32::new(50).expect("not 0");
/// A change of the configuration is published after this time.
const PUBLISH_DELAY: Duration = Duration::from_millis(100);

/// The part of the store in one server.
#[derive(Debug)]
pub struct SharedStore {
    pub writer: EntryWriter,
    instance: String,
    entries: WatchedConfig,
    leases: Leases,
    isolation: Isolation,
    alive: BTreeSet<String>,
    /// When the own Lease was last renewed.
    renewed: Duration,
    leases_unreachable: bool,
    is_unreachable: bool,
    /// The watch events that have not arrived.
    watch: VecDeque<(Key, WatchEvent)>,
    /// The arrival time of the last one.
    last: Duration,
}

impl SharedStore {
    /// Returns the records of all entries that carry any state.
    pub fn stored(&self) -> BTreeMap<Key, Record> {
        let records = self.writer.objects().iter().map(|(key, object)| (key.clone(), object::record(object)));
        let nothing = |record: &Record| {
            *record == Record { resource_version: record.resource_version.clone(), ..Record::default() }
        };
        records.filter(|(_, record)| !nothing(record)).collect()
    }

    /// Returns the configuration with the manual entries that this server knows.
    pub fn configuration(&self, config: &Config) -> Arc<Config> {
        Arc::new(Config { entries: self.entries.config().entries.clone(), ..config.clone() })
    }

    /// Returns whether the server is not ready, because it cannot show that it is alive.
    pub fn is_isolated(&self) -> bool {
        self.isolation.is_isolated()
    }

    pub fn set_desired(&mut self, key: Key, write: u64, record: Option<Box<Record>>, session: u64) {
        let desired = record.map_or(DesiredState::Delete(session), DesiredState::Put);
        self.writer.set_desired(key, write, desired);
    }

    fn update_entry(&mut self, key: &Key) -> bool {
        let object = self.writer.objects().get(key).cloned();
        self.entries.update(Kind::Entry, key, object.as_deref())
    }
}

impl World {
    /// Lists all objects, as a server does at its start.
    pub(super) fn open_shared_store(&mut self, replica: usize) -> SharedStore {
        let instance = self.instances[replica].clone();
        self.api.renew_lease(&instance, false);
        let context =
            ReplicaContext { instance: instance.clone(), alive: BTreeSet::from([instance.clone()]) };
        let mut shared = SharedStore {
            writer: EntryWriter::new(context, WRITES_PER_SECOND),
            instance: instance.clone(),
            entries: WatchedConfig::default(),
            leases: Leases::new(instance),
            isolation: Isolation::default(),
            alive: BTreeSet::new(),
            renewed: Duration::ZERO,
            leases_unreachable: false,
            is_unreachable: false,
            watch: VecDeque::new(),
            last: Duration::ZERO,
        };
        for (key, object) in &self.api.objects {
            shared.writer.object_changed(key.clone(), object.clone(), true);
            shared.update_entry(key);
        }
        shared
    }

    fn is_isolated(&self, replica: usize) -> bool {
        self.now < self.isolated[replica].1
    }

    /// Sends the requests that are due.
    pub(super) fn write_to_api_server(&mut self, replica: usize) {
        let Some(server) = &mut self.servers[replica] else { return };
        let Some(shared) = &mut server.shared else { return };
        let effects = shared.writer.step(self.now - server.started);
        self.apply_of_store(replica, effects);
    }

    fn apply_of_store(&mut self, replica: usize, effects: Vec<Effect>) {
        for effect in effects {
            self.trace(|| format!("store {replica}: {effect:?}"));
            let Some(server) = &mut self.servers[replica] else { return };
            let run = server.run;
            match effect {
                Effect::Send(key, request) => self.send_to_api_server(replica, run, key, request),
                Effect::ConfigChanged(key) => {
                    if server.shared.as_mut().is_some_and(|shared| shared.update_entry(&key)) {
                        self.at(self.now + PUBLISH_DELAY, Event::ReadConfiguration(replica));
                    }
                }
                Effect::Stored(key, write) => self.step_server(replica, Input::Stored { key, write }),
                Effect::Observed(key, record) => self.step_server(replica, Input::Observed { key, record }),
            }
        }
    }

    fn send_to_api_server(&mut self, replica: usize, server: u64, key: Key, request: Request) {
        if self.is_isolated(replica) {
            let response = Box::new(Err(ApiError::Unreachable("isolated".to_owned())));
            return self.at(self.now + DEADLINE, Event::ApiResponse { server, key, response });
        }
        let at = self.now + self.random.millis(1, LATENCY);
        self.at(at, Event::ApiRequest { server, key, request: Box::new(request) });
    }

    pub(super) fn api_request(&mut self, server: u64, key: Key, request: &Request) {
        let before = self.api.objects.get(&key).map(object::session);
        let (response, event) = self.api.answer(&key, request);
        if let Some(event) = event {
            let after = self.api.objects.get(&key).map(object::session);
            self.invariants.session_written(&key, before, after);
            self.notify(&key, &event);
        }
        let at = self.now + self.random.millis(1, LATENCY);
        self.at(at, Event::ApiResponse { server, key, response: Box::new(response) });
    }

    pub(super) fn api_response(&mut self, server: u64, key: Key, mut response: Result<Value, ApiError>) {
        let Some(replica) = self.replica_of(server) else { return };
        if self.is_isolated(replica) {
            // The request may have had its effect.
            response = Err(ApiError::Unreachable("isolated".to_owned()));
        }
        let Some(server) = &mut self.servers[replica] else { return };
        let now = self.now - server.started;
        let Some(shared) = &mut server.shared else { return };
        let effects = shared.writer.on_response(now, key, response);
        self.apply_of_store(replica, effects);
        self.update_reachability(replica);
    }

    /// Informs the watches of all servers.
    fn notify(&mut self, key: &Key, event: &WatchEvent) {
        for replica in 0..self.servers.len() {
            let at = self.now + self.random.millis(0, WATCH_LATENCY);
            let Some(server) = &mut self.servers[replica] else { continue };
            let Some(shared) = &mut server.shared else { continue };
            shared.watch.push_back((key.clone(), event.clone()));
            shared.last = shared.last.max(at);
            let (at, server) = (shared.last, server.run);
            self.at(at, Event::Watch { server });
        }
    }

    pub(super) fn watch_event(&mut self, server: u64) {
        let Some(replica) = self.replica_of(server) else { return };
        if self.is_isolated(replica) {
            return self.at(self.isolated[replica].1, Event::Watch { server });
        }
        let Some(shared) = self.servers[replica].as_mut().and_then(|server| server.shared.as_mut()) else {
            return;
        };
        let Some((key, (object, exists))) = shared.watch.pop_front() else { return };
        if self.injected_bug == Some(InjectedBug::WatchEventsAreLost) {
            return;
        }
        let effects = shared.writer.object_changed(key, object, exists);
        self.apply_of_store(replica, effects);
    }

    /// Renews the own Lease and reads all.
    pub(super) fn read_leases(&mut self, run: u64) {
        let Some(replica) = self.replica_of(run) else { return };
        self.at(self.now + READ_INTERVAL, Event::ReadLeases { server: run });
        let is_isolated = self.is_isolated(replica);
        let Some(server) = &mut self.servers[replica] else { return };
        let now = self.now - server.started;
        let Some(shared) = &mut server.shared else { return };
        shared.leases_unreachable = is_isolated;
        if !is_isolated && now.saturating_sub(shared.renewed) + READ_INTERVAL > RENEWAL {
            shared.renewed = now;
            self.api.renew_lease(&shared.instance, false);
        }
        let ends = shared.isolation.update(now, shared.renewed);
        let replicas = (!is_isolated).then(|| shared.leases.update(now, self.api.leases()));
        self.update_reachability(replica);
        if ends {
            self.step_server(replica, Input::EndReporters);
        }
        let Some(replicas) = replicas else { return };
        let Some(shared) = self.servers[replica].as_mut().and_then(|server| server.shared.as_mut()) else {
            return;
        };
        if replicas.alive != shared.alive {
            shared.alive.clone_from(&replicas.alive);
            shared.writer.set_alive(replicas.alive.clone());
            let (alive, released) = (replicas.alive, replicas.released);
            self.step_server(replica, Input::Replicas { alive, released });
        }
    }

    fn update_reachability(&mut self, replica: usize) {
        let Some(shared) = self.servers[replica].as_mut().and_then(|server| server.shared.as_mut()) else {
            return;
        };
        let is_unreachable = shared.leases_unreachable || shared.writer.is_unreachable();
        if std::mem::replace(&mut shared.is_unreachable, is_unreachable) != is_unreachable {
            self.step_server(replica, Input::StoreUnreachable(is_unreachable));
        }
    }

    /// Releases the Lease of a server that ends cleanly.
    pub(super) fn release_lease(&mut self, replica: usize) {
        if !self.is_isolated(replica) && self.servers[replica].is_some() {
            self.api.renew_lease(&self.instances[replica], true);
        }
    }

    pub(super) fn isolate(&mut self, replica: usize, lasts: Duration) {
        if !self.is_isolated(replica) {
            self.isolated[replica] = (self.now, self.now + lasts);
            self.invariants.isolated(replica, self.now, self.now + lasts);
        }
    }

    /// Creates the objects of the initial manual entries.
    pub(super) fn create_manual_entries(&mut self) {
        if self.plan.replicas > 1 {
            let hosts: Vec<usize> = self.configuration.entries.keys().copied().collect();
            hosts.into_iter().for_each(|host| self.edit_manual_entry(host));
        }
    }

    /// Creates or deletes the object of a manual entry, as an operator does.
    pub(super) fn edit_manual_entry(&mut self, host: usize) {
        let key = configuration::manual_key(host);
        let exists = self.api.objects.contains_key(&key);
        let event = match self.configuration.entries.get(&host) {
            Some(true) if !exists => {
                let object = configuration::manual_entry(host, self.now);
                Some((self.api.put(&key, object), true))
            }
            Some(false) => self.api.delete(&key),
            _ => None,
        };
        if let Some(event) = event {
            if !event.1 {
                self.invariants.session_written(&key, None, None);
            }
            self.notify(&key, &event);
        }
        self.invariants.configured(&self.configuration.config());
    }

    /// Checks that an acknowledged report is stored.
    pub(super) fn check_acknowledged(&mut self, stream: StreamId, key: &Key, epoch: &str, generation: u64) {
        if self.plan.replicas == 1 {
            let record = self.disk.records.get(key);
            return self.invariants.acknowledged(stream, epoch, generation, record);
        }
        let Some(object) = self.api.objects.get(key) else {
            // Another writer has deleted it since.
            if !self.api.deleted.contains(key) {
                self.invariants.acknowledged(stream, epoch, generation, None);
            }
            return;
        };
        // Another server may have begun a newer session since.
        if self.invariants.session_of(stream) >= object::session(object) {
            self.invariants.acknowledged(stream, epoch, generation, Some(&object::record(object)));
        }
    }
}
