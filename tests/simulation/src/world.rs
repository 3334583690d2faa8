//! The simulated world of a plan: one clock, one queue, machines, a network, servers and their store.
//! It never waits or accesses the operating system; the same plan always gives the same history.
//!
//! The state machines of both sides are the real ones, everything else is simulated. The handling
//! of the events is in `machines`, `server`, `store`, `ads`, `envoys`, `connections`, `bulk` and `faults`.

mod ads;
mod bulk;
mod connections;
mod envoys;
mod faults;
mod machines;
mod server;
mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use discovery::debounce::Debounce;
use discovery::entries::{Entries, StreamId};
use discovery::objects::{Config, Key};
use discovery::snapshot::Snapshot;
use discovery::stream::AdsStream;
use discovery_server::store::kubernetes::request::{ApiError, Request};
use serde_json::Value;
use xds_proxy::Input as ClientInput;

use super::api_server::ApiServer;
use super::configuration::{self, Configuration};
use super::disk::Disk;
use super::envoy::Envoy;
use super::injected_bug::InjectedBug;
use super::invariants::Invariants;
use super::network::{End, Network};
use super::plan::{BulkEnd, Plan};
use super::process::Process;
use super::random::Random;

use bulk::BulkFault;
pub use envoys::Client;
pub use store::SharedStore;

/// More steps than this at one point in time are an endless loop.
const STEPS_AT_ONCE: u64 = 5_000;

#[derive(Debug, Clone)]
pub enum Event {
    /// The fault of the plan with this number.
    Fault(usize),
    /// A packet arrives at an end.
    Arrive(StreamId, End),
    /// An end detects that the other one is gone, if the reason still exists.
    LossDetected(StreamId, End, LossReason),
    /// A connection attempt of a run ends.
    ConnectEnded { machine: usize, run: u64, reached: bool },
    /// A run has validated a pushed probe.
    ProbeValidated { machine: usize, run: u64, input: Box<ClientInput>, probe: Option<serde_json::Value> },
    /// Pending writes become durable.
    Commit { server: u64 },
    /// The server is informed that a write is durable.
    Stored { server: u64, key: Key, write: u64 },
    /// The request of a server arrives at the API server.
    ApiRequest { server: u64, key: Key, request: Box<Request> },
    /// The response of the API server, or the error, arrives at the server.
    ApiResponse { server: u64, key: Key, response: Box<Result<Value, ApiError>> },
    /// The next watch event of the API server arrives at the server.
    Watch { server: u64 },
    /// The server reads and renews the Leases.
    ReadLeases { server: u64 },
    /// The server reads its configuration.
    ReadConfiguration(usize),
    /// The server starts if it is not running.
    StartServer(usize),
    /// An agent shuts down cleanly, and starts again after this time, if it is given.
    StopMachine { machine: usize, end: BulkEnd },
    /// An agent starts if it is not running.
    StartMachine(usize),
    /// The effects of a fault of many agents must be over.
    BulkFaultSettled,
    /// An Envoy tries to open a stream.
    ConnectEnvoy(usize),
}

/// Why an end considers the other one gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// The other end has closed the connection.
    Gone,
    /// PINGs are not answered while a partition or pause of the host lasts that began at `since`.
    Unanswered { host: usize, since: Duration },
}

/// A machine on which agents run.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The health of the application; absent: random for each probe.
    pub healthy: Option<bool>,
    /// Start and end of the partition.
    pub partition: (Duration, Duration),
    /// Start and end of the pause.
    pub frozen: (Duration, Duration),
}

/// A run of a server.
#[derive(Debug)]
pub struct Server {
    /// The number of the run; later runs have larger numbers.
    pub run: u64,
    /// When it started, in simulated time.
    pub started: Duration,
    pub entries: Entries,
    /// The part of the store in this server, if servers share it.
    pub shared: Option<SharedStore>,
    /// The resources for Envoys.
    pub snapshot: Snapshot,
    config: Arc<Config>,
    debounce: Debounce,
    /// Until when the endpoints may be incomplete because the store was empty.
    startup_grace: Option<Duration>,
    /// The streams of Envoys.
    streams: BTreeMap<StreamId, AdsStream>,
    nonces: u64,
}

#[derive(Debug)]
pub struct World {
    pub(super) plan: Plan,
    pub(super) now: Duration,
    pub(super) injected_bug: Option<InjectedBug>,
    pub(super) random: Random,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    queued: u64,
    pub(super) hosts: Vec<Host>,
    pub(super) processes: Vec<Option<Process>>,
    pub(super) clients: Vec<Client>,
    runs: u64,
    pub(super) network: Network,
    /// The servers; absent: not running.
    pub(super) servers: Vec<Option<Server>>,
    pub(super) disk: Disk,
    pub(super) api: ApiServer,
    /// Start and end of the time in which a server cannot reach the API server.
    isolated: Vec<(Duration, Duration)>,
    /// The name of each server in the store.
    instances: Vec<String>,
    /// The agents that start again after their end, and how long after it.
    restarting: BTreeMap<usize, Duration>,
    pub(super) bulk_fault: Option<BulkFault>,
    disk_full_until: Duration,
    wall_offset: i64,
    pub(super) configuration: Configuration,
    pub(super) invariants: Invariants,
    /// The lines of the history, if requested.
    pub trace: Option<Vec<String>>,
}

impl World {
    /// Returns the initial world.
    pub fn new(plan: Plan, injected_bug: Option<InjectedBug>) -> Self {
        let mut hosts = vec![Host::default(); plan.machines.len() + plan.envoys.len()];
        for machine in &plan.machines {
            hosts[machine.host].healthy = Some(machine.healthy);
        }
        let mut world = Self {
            now: Duration::ZERO,
            injected_bug,
            random: Random::new(plan.seed ^ 0x5eed),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            queued: 0,
            hosts,
            processes: plan.machines.iter().map(|_| None).collect(),
            clients: plan
                .envoys
                .iter()
                .map(|(variant, _)| Client { envoy: Envoy::new(*variant), stream: None })
                .collect(),
            runs: 0,
            network: Network::default(),
            servers: (0..plan.replicas).map(|_| None).collect(),
            disk: Disk::default(),
            api: ApiServer::default(),
            isolated: vec![(Duration::ZERO, Duration::ZERO); plan.replicas],
            instances: (0..plan.replicas).map(|replica| format!("d-{replica}")).collect(),
            restarting: BTreeMap::new(),
            bulk_fault: None,
            disk_full_until: Duration::ZERO,
            wall_offset: 0,
            configuration: Configuration::new(&plan),
            invariants: Invariants::new(&plan),
            trace: None,
            plan,
        };
        world.create_manual_entries();
        for replica in 0..world.servers.len() {
            world.at(Duration::ZERO, Event::StartServer(replica));
        }
        for number in 0..world.clients.len() {
            let at = world.random.millis(0, 20_000);
            world.at(at, Event::ConnectEnvoy(number));
        }
        for index in 0..world.plan.faults.len() {
            world.at(world.plan.faults[index].0, Event::Fault(index));
        }
        world
    }

    /// Runs until the world has reached its final state.
    ///
    /// # Errors
    /// Describes the first violation.
    pub fn run(&mut self) -> Result<(), String> {
        let end = self.plan.until + self.plan.rest;
        let mut at_once = 0;
        loop {
            if let Some(violation) = self.invariants.violation.take() {
                return Err(format!("{:.3} s: {violation}", self.now.as_secs_f64()));
            }
            let due = [self.queue.peek().map(|next| next.0.0), self.next_machine(), self.next_server()];
            let Some(due) = due.into_iter().flatten().min().filter(|due| *due <= end) else { break };
            at_once = if due > self.now { 0 } else { at_once + 1 };
            if at_once > STEPS_AT_ONCE {
                return Err(format!("{:.3} s: endless loop of events", self.now.as_secs_f64()));
            }
            self.now = self.now.max(due);
            self.invariants.steps += 1;
            match self.queue.pop() {
                Some(Reverse((at, number))) if at <= self.now => {
                    let event = self.events.remove(&number).expect("each number has its event");
                    self.happen(event);
                }
                other => {
                    self.queue.extend(other);
                    self.pass_time();
                }
            }
        }
        self.now = end;
        Ok(())
    }

    fn at(&mut self, at: Duration, event: Event) {
        self.queued += 1;
        self.queue.push(Reverse((at, self.queued)));
        self.events.insert(self.queued, event);
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:10.3}  {}", self.now.as_secs_f64(), line()));
        }
    }

    fn latency(&mut self) -> Duration {
        let (from, to) = self.plan.latency;
        self.random.millis(from, to)
    }

    fn is_cut_off(&self, host: usize) -> bool {
        self.now < self.hosts[host].partition.1
    }

    fn is_frozen(&self, host: usize) -> bool {
        self.now < self.hosts[host].frozen.1
    }

    fn key(&self, machine: usize) -> Key {
        configuration::key(&self.plan.machines[machine])
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fault(index) => {
                let fault = self.plan.faults[index].1.clone();
                self.trace(|| format!("FAULT {fault:?}"));
                self.fault(fault);
            }
            Event::Arrive(stream, end) => self.arrive(stream, end),
            Event::LossDetected(stream, end, reason) => self.detect_loss(stream, end, reason),
            Event::ConnectEnded { machine, run, reached } => self.connect_ended(machine, run, reached),
            Event::ProbeValidated { machine, run, input, probe } => {
                self.probe_validated(machine, run, *input, probe.as_ref())
            }
            Event::Commit { server } => self.commit(server),
            Event::Stored { server, key, write } => self.stored(server, key, write),
            Event::ApiRequest { server, key, request } => self.api_request(server, key, &request),
            Event::ApiResponse { server, key, response } => self.api_response(server, key, *response),
            Event::Watch { server } => self.watch_event(server),
            Event::ReadLeases { server } => self.read_leases(server),
            Event::ReadConfiguration(replica) => self.read_configuration(replica),
            Event::StartServer(replica) => self.start_server(replica),
            Event::StopMachine { machine, end } => self.stop_machine(machine, end),
            Event::StartMachine(machine) => self.start_machine(machine),
            Event::BulkFaultSettled => self.bulk_fault_settled(),
            Event::ConnectEnvoy(number) => self.connect_envoy(number),
        }
    }

    fn pass_time(&mut self) {
        for replica in 0..self.servers.len() {
            if self.next_of_server(replica).is_some_and(|due| due <= self.now) {
                return self.tick_server(replica);
            }
        }
        for machine in 0..self.processes.len() {
            if self.next_of(machine).is_some_and(|due| due <= self.now) {
                return self.tick_machine(machine);
            }
        }
    }
}
