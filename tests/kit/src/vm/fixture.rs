//! A test fixture with discovery, machines, and an Envoy that balances requests over them, and
//! functions that wait for an expected state.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::discovery::Discovery;
use super::documents::{PORT, group, probe, service};
use super::envoy_client::{EnvoyClient, Subscription};
use super::machine::Machine;
use crate::envoy;
use crate::net;
use crate::wait;

/// The settings of a fixture.
pub struct FixtureSettings {
    /// The number of machines.
    pub machines: usize,
    /// The configuration; by default the group with its probe, and the service.
    pub documents: Vec<Value>,
    /// Additional flags of discovery.
    pub discovery: Vec<&'static str>,
    /// Additional flags of the agents.
    pub agents: Vec<&'static str>,
    pub subscription: fn(SocketAddr) -> Subscription,
}

impl Default for FixtureSettings {
    fn default() -> Self {
        Self {
            machines: 2,
            documents: vec![group(&probe()), service()],
            discovery: Vec::new(),
            agents: Vec::new(),
            subscription: Subscription::sotw,
        }
    }
}

/// All running components; dropping this stops them.
pub struct Fixture {
    /// The folder with all files.
    pub folder: PathBuf,
    pub machines: Vec<Machine>,
    pub client: EnvoyClient,
    pub discovery: Discovery,
}

impl Fixture {
    /// Starts all components in plaintext and waits until Envoy has an endpoint of each machine.
    ///
    /// # Panics
    /// If a component does not start; the message contains its log.
    pub async fn start(name: &str, settings: FixtureSettings) -> Self {
        let folder = envoy::folder(name);
        let mut discovery = Discovery::new(&folder, &settings.documents).flags(&settings.discovery);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let mut machines = Vec::new();
        for number in 1..=settings.machines {
            let mut machine = Machine::new(&folder, &format!("m{number}"), net::loopback()).await;
            machine.report_plaintext(&discovery);
            machine.add_flags(&settings.agents);
            machine.start_agent().expect("the agent starts");
            machines.push(machine);
        }
        let subscription = (settings.subscription)(discovery.plaintext());
        let client = EnvoyClient::start(&folder, "client", net::loopback(), &subscription).await;
        let fixture = Self { folder, machines, client, discovery };
        let all: Vec<usize> = (0..settings.machines).collect();
        fixture.until_endpoints(&all).await;
        fixture
    }

    /// Waits until Envoy's endpoints are those of these machines.
    ///
    /// # Panics
    /// After [`wait::timeout`]; the message contains the state and the logs.
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
    pub async fn assert_endpoints_stable(&self, machines: &[usize], time: Duration) {
        let before = self.endpoint_changes().await;
        self.assert_endpoints(machines).await;
        tokio::time::sleep(time).await;
        self.assert_endpoints(machines).await;
        self.assert_endpoint_changes(before, 0).await;
    }

    async fn assert_endpoints(&self, machines: &[usize]) {
        let (found, wanted) = (self.client.endpoints().await, self.addresses(machines));
        if found != wanted {
            panic!("got {found:?}, expected {wanted:?}\n{}", self.state().await);
        }
    }

    /// Returns how often endpoints were added to or removed from the service in Envoy.
    ///
    /// # Panics
    /// If Envoy does not know the service.
    pub async fn endpoint_changes(&self) -> u64 {
        self.client.cluster_stat("membership_change").await.expect("Envoy counts the changes of a cluster")
    }

    /// Asserts that Envoy's endpoints have changed exactly `times` times since `before`, a result of
    /// [`Fixture::endpoint_changes`].
    ///
    /// # Panics
    /// If there were more or fewer changes.
    pub async fn assert_endpoint_changes(&self, before: u64, times: u64) {
        let changes = self.endpoint_changes().await - before;
        if changes != times {
            panic!("{changes} changes of the endpoints, expected {times}\n{}", self.state().await);
        }
    }

    /// Waits until `is_wanted` is true for discovery's view of a machine's entry, and returns the
    /// view.
    ///
    /// # Panics
    /// After [`wait::timeout`]; the message contains the state and the logs.
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
