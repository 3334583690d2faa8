//! A test fixture with discovery, machines, and an Envoy that balances requests over them, and
//! functions that wait for an expected state.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::client::{Client, Way};
use super::discovery::Discovery;
use super::documents::{PORT, group, probe, service};
use super::machine::Machine;
use crate::envoy;
use crate::net;

/// Limit for everything that should happen at once, since the machine that runs the tests may be
/// busy.
pub const SOON: Duration = Duration::from_secs(20);

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

    /// Waits until Envoy's endpoints are those of these machines, and returns the duration.
    ///
    /// # Panics
    /// After [`SOON`]; the message contains the state and the logs.
    pub async fn until_endpoints(&self, machines: &[usize]) -> Duration {
        self.endpoints_within(machines, SOON).await
    }

    /// Like [`Scene::until_endpoints`], with another limit.
    ///
    /// # Panics
    /// After `bound`.
    pub async fn endpoints_within(&self, machines: &[usize], bound: Duration) -> Duration {
        let wanted = self.addresses(machines);
        let begin = Instant::now();
        loop {
            let found = self.client.endpoints().await;
            if found == wanted {
                return begin.elapsed();
            }
            if begin.elapsed() > bound {
                panic!("expected {wanted:?}, got {found:?}\n{}", self.state().await);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Checks for `time` that Envoy's endpoints remain those of these machines.
    ///
    /// # Panics
    /// If the endpoints change.
    pub async fn stays(&self, machines: &[usize], time: Duration) {
        let wanted = self.addresses(machines);
        let begin = Instant::now();
        while begin.elapsed() < time {
            let found = self.client.endpoints().await;
            if found != wanted {
                panic!(
                    "got {found:?} after {:?}, expected {wanted:?}\n{}",
                    begin.elapsed(),
                    self.state().await
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until `is_wanted` is true for discovery's view of a machine's entry, and returns the
    /// view.
    ///
    /// # Panics
    /// After [`SOON`]; the message contains the state and the logs.
    pub async fn until_view(&self, machine: usize, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let workload = self.discovery.workload(self.machines[machine].ip).await;
            if is_wanted(&workload) {
                return workload;
            }
            if begin.elapsed() > SOON {
                panic!("the view is {workload:#}\n{}", self.state().await);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
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
