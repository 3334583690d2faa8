//! A test fixture with discovery, machines, and an Envoy that balances requests over them, and
//! functions that wait for an expected state.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::client::{Client, Way};
use super::discovery::Discovery;
use super::documents::{PORT, group, probe, service};
use super::machine::Machine;
use super::wait;
use crate::envoy;
use crate::net;

/// The settings of a fixture.
pub struct Plan {
    /// The number of machines.
    pub machines: usize,
    /// The configuration; by default the group with its probe, and the service.
    pub documents: Vec<Value>,
    /// Additional flags of discovery.
    pub discovery: Vec<&'static str>,
    /// Additional flags of the agents.
    pub agents: Vec<&'static str>,
    pub way: fn(SocketAddr) -> Way,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            machines: 2,
            documents: vec![group(&probe()), service()],
            discovery: Vec::new(),
            agents: Vec::new(),
            way: Way::sotw,
        }
    }
}

/// All running components; dropping this stops them.
pub struct Scene {
    /// The folder with all files.
    pub folder: PathBuf,
    pub machines: Vec<Machine>,
    pub client: Client,
    pub discovery: Discovery,
}

impl Scene {
    /// Starts all components in plaintext and waits until Envoy has an endpoint of each machine.
    ///
    /// # Panics
    /// If a component does not start; the message contains its log.
    pub async fn start(name: &str, plan: Plan) -> Self {
        let folder = envoy::folder(name);
        let mut discovery = Discovery::new(&folder, &plan.documents).flags(&plan.discovery);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let mut machines = Vec::new();
        for number in 1..=plan.machines {
            let mut machine = Machine::new(&folder, &format!("m{number}"), net::loopback()).await;
            machine.join_plaintext(&discovery);
            machine.tell(&plan.agents);
            machine.start_agent().expect("the agent starts");
            machines.push(machine);
        }
        let way = (plan.way)(discovery.plaintext());
        let client = Client::start(&folder, "client", net::loopback(), &way).await;
        let scene = Self { folder, machines, client, discovery };
        let all: Vec<usize> = (0..plan.machines).collect();
        scene.until_endpoints(&all).await;
        scene
    }

    /// Waits until Envoy's endpoints are those of these machines.
    ///
    /// # Panics
    /// After [`wait::TIMEOUT`]; the message contains the state and the logs.
    pub async fn until_endpoints(&self, machines: &[usize]) {
        let wanted = self.addresses(machines);
        let are_there = async || (self.client.endpoints().await == wanted).then_some(());
        if wait::try_poll(are_there).await.is_none() {
            let found = self.client.endpoints().await;
            panic!("expected {wanted:?}, got {found:?}\n{}", self.state().await);
        }
    }

    /// Asserts that Envoy's endpoints are those of these machines and do not change for `time`, not
    /// even for a moment.
    ///
    /// # Panics
    /// If the endpoints change.
    pub async fn stays(&self, machines: &[usize], time: Duration) {
        let before = self.changes().await;
        self.has_endpoints(machines).await;
        tokio::time::sleep(time).await;
        self.has_endpoints(machines).await;
        self.has_changed_only(before, 0).await;
    }

    async fn has_endpoints(&self, machines: &[usize]) {
        let (found, wanted) = (self.client.endpoints().await, self.addresses(machines));
        if found != wanted {
            panic!("got {found:?}, expected {wanted:?}\n{}", self.state().await);
        }
    }

    /// Returns how often endpoints were added to or removed from the service in Envoy.
    ///
    /// # Panics
    /// If Envoy does not know the service.
    pub async fn changes(&self) -> u64 {
        self.client.cluster_stat("membership_change").await.expect("Envoy counts the changes of a cluster")
    }

    /// Asserts that Envoy's endpoints have changed exactly `times` times since `before`, a result of
    /// [`Scene::changes`].
    ///
    /// # Panics
    /// If there were more or fewer changes.
    pub async fn has_changed_only(&self, before: u64, times: u64) {
        let changes = self.changes().await - before;
        if changes != times {
            panic!("{changes} changes of the endpoints, expected {times}\n{}", self.state().await);
        }
    }

    /// Waits until `is_wanted` is true for discovery's view of a machine's entry, and returns the
    /// view.
    ///
    /// # Panics
    /// After [`wait::TIMEOUT`]; the message contains the state and the logs.
    pub async fn until_view(&self, machine: usize, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let view = async || self.discovery.workload(self.machines[machine].ip).await;
        let wanted = wait::try_poll(async || Some(view().await).filter(&is_wanted)).await;
        match wanted {
            Some(workload) => workload,
            None => panic!("the view is {:#}\n{}", view().await, self.state().await),
        }
    }

    /// Returns the view and all logs, for the message of a failed test.
    pub async fn state(&self) -> String {
        let view = self.discovery.view().await;
        let mut text = format!("view: {view:#}\ndiscovery:\n{}\n", self.discovery.log());
        for machine in &self.machines {
            text.push_str(&format!("agent {} {}:\n{}\n", machine.name, machine.ip, machine.log()));
        }
        text + "envoy:\n" + &self.client.envoy.log()
    }

    fn addresses(&self, machines: &[usize]) -> BTreeSet<SocketAddr> {
        machines.iter().map(|machine| SocketAddr::new(self.machines[*machine].ip, PORT)).collect()
    }
}
