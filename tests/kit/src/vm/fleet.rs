//! Simulates many agents in one process. Each has the agent's real reporter and messages, and a
//! connection (TCP, TLS, HTTP/2) from a separate address. Only probing is left out: a test sets the
//! health of each workload.

mod documents;
mod eds_client;
mod load_test;
mod simulated_agent;
mod stats;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use xds_client::tls::{ClientFiles, San, TlsFiles};

use super::certificates::{Authority, DISCOVERY_NAME};
pub use documents::{ACCOUNTS, NAMESPACE, cluster, documents};
pub use eds_client::{EdsClient, EdsState, Push, Removal};
pub use load_test::{LoadSize, LoadTest};
use simulated_agent::SimulatedAgent;
pub use stats::FleetStats;

/// Settings of a fleet.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// The ADS address of discovery.
    pub server: SocketAddr,
    /// The number of agents.
    pub agents: u32,
    /// The number of services; agents are assigned to them in turn.
    pub services: u32,
    /// The heartbeat interval of each agent.
    pub heartbeat: Duration,
    /// The first connection attempts are spread evenly over this duration.
    pub ramp: Duration,
    /// The TLS client settings of each service account, by its number; empty: plaintext.
    pub tls: Vec<Arc<ClientConfig>>,
}

/// The agents. Dropping this closes their connections like the death of the agents would.
pub struct Fleet {
    /// Counts of all agents.
    pub stats: Arc<FleetStats>,
    health: Vec<watch::Sender<bool>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Fleet {
    /// Starts all agents, initially healthy.
    ///
    /// # Panics
    /// If there is no service, or outside a tokio runtime.
    pub fn start(settings: &FleetSettings) -> Self {
        Self::of(settings, 0..settings.agents)
    }

    /// Starts the agent with this number only, which is healthy.
    ///
    /// # Panics
    /// As [`Fleet::start`].
    pub fn single(settings: &FleetSettings, number: u32) -> Self {
        Self::of(settings, number..number + 1)
    }

    fn of(settings: &FleetSettings, numbers: Range<u32>) -> Self {
        let stats = Arc::new(FleetStats::new(numbers.end));
        let (mut health, mut tasks) = (Vec::new(), Vec::new());
        for number in numbers {
            let (sender, receiver) = watch::channel(true);
            let delay = settings.ramp * number / settings.agents.max(1);
            let agent = SimulatedAgent::new(number, settings, receiver, Arc::clone(&stats));
            tasks.push(AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                agent.run().await;
            })));
            health.push(sender);
        }
        Self { stats, health, _tasks: tasks }
    }

    /// Sets the health of a workload.
    ///
    /// # Panics
    /// If there is no such agent.
    pub fn set_healthy(&self, agent: u32, healthy: bool) {
        self.health[agent as usize].send_replace(healthy);
    }

    /// Returns the health of a workload.
    ///
    /// # Panics
    /// If there is no such agent.
    pub fn is_healthy(&self, agent: u32) -> bool {
        *self.health[agent as usize].borrow()
    }
}

/// Returns the address of an agent, which is both its source address and its endpoint.
///
/// # Panics
/// After 65,536 agents.
pub fn address(agent: u32) -> IpAddr {
    let [0, 0, high, low] = agent.to_be_bytes() else { panic!("no addresses are left") };
    // This range does not overlap with the addresses of `net::loopback`.
    IpAddr::V4(Ipv4Addr::new(127, 250, high, low))
}

/// Returns the client settings of the service accounts, for [`FleetSettings::tls`].
///
/// # Panics
/// If the folder is not writable.
pub fn clients(authority: &Authority, folder: &Path) -> Vec<Arc<ClientConfig>> {
    let san = San::new(DISCOVERY_NAME, DISCOVERY_NAME).expect("a DNS name");
    let client = |account: &&str| {
        let files = authority.workload(folder, account, NAMESPACE, account);
        let client = ClientFiles { cert: files.certificate, key: files.key, is_optional: false };
        let files = TlsFiles { names: TlsFiles::FLAGS, ca: files.authority, client: Some(client) };
        let content = files.read().expect("the files were just written");
        content.client(&san).expect("matching certificates")
    };
    ACCOUNTS.iter().map(client).collect()
}
