//! A server, a fleet that reports to it, and a client that receives its endpoints.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::documents::PORT;
use super::{EdsClient, Fleet, FleetSettings, NAMESPACE, address, clients, cluster, documents};
use crate::envoy;
use crate::process::Process;
use crate::vm::certificates::{Authority, DISCOVERY_NAME};
use crate::vm::discovery::Discovery;
use crate::wait;

/// Pause between two checks of the registrations.
const PACE: Duration = Duration::from_millis(20);
/// Pause between two readings of the memory.
const READING: Duration = Duration::from_millis(500);

/// The size of a load test.
#[derive(Clone, Copy, Debug)]
pub struct LoadSize {
    pub agents: u32,
    /// The number of services; agents are assigned to them in turn.
    pub services: u32,
    /// The initial rate of new agents, per second.
    pub arrivals: u32,
    /// The heartbeat interval of an agent.
    pub heartbeat: Duration,
}

/// The server, the agents and the client; dropping this stops them.
pub struct LoadTest {
    pub discovery: Discovery,
    /// The agents, connected over mutual TLS.
    pub fleet: Fleet,
    /// The client that receives the endpoints.
    pub eds_client: EdsClient,
    /// The settings of the agents.
    pub settings: FleetSettings,
    /// The memory of the server before the first agent connected, in bytes.
    pub base: u64,
}

impl LoadTest {
    /// Starts the server and the agents, and waits until every agent is registered and the client
    /// has every endpoint.
    ///
    /// # Errors
    /// Says what is missing, or why the server does not start.
    pub async fn start(name: &str, size: LoadSize) -> Result<Self, String> {
        let LoadSize { agents, services, arrivals, heartbeat } = size;
        let folder = envoy::folder(name);
        let authority = Authority::new();
        let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
        let mut discovery = Discovery::new(&folder, &documents(services)).tls(&files);
        discovery.start().await?;
        let base = steady_memory(Process::new(discovery.pid().as_raw().unsigned_abs())).await;
        let settings = FleetSettings {
            server: discovery.secure(),
            agents,
            services,
            heartbeat,
            ramp: Duration::from_secs(1) * agents / arrivals,
            tls: clients(&authority, &folder),
        };
        let eds_client =
            EdsClient::start(discovery.plaintext(), NAMESPACE, (0..services).map(cluster).collect());
        let fleet = Fleet::start(&settings);
        let load_test = Self { discovery, fleet, eds_client, settings, base };
        load_test.until_registered(Duration::ZERO).await?;
        load_test.until_endpoints_match(wait::timeout()).await?;
        Ok(load_test)
    }

    /// Returns the current process of the server.
    pub fn process(&self) -> Process {
        Process::new(self.discovery.pid().as_raw().unsigned_abs())
    }

    /// Waits until every agent has had a report acknowledged on its current stream after `since`,
    /// and returns the time of the first one for each.
    ///
    /// # Errors
    /// The number of missing agents, after [`wait::timeout`].
    pub async fn until_registered(&self, since: Duration) -> Result<Vec<Duration>, String> {
        let begin = Instant::now();
        loop {
            let mut times = self.fleet.stats.registered();
            times.retain(|time| *time >= since);
            let missing = (self.settings.agents as usize).saturating_sub(times.len());
            if missing == 0 {
                return Ok(times);
            }
            if begin.elapsed() > wait::timeout() {
                let why = self.fleet.stats.failure().unwrap_or_default();
                return Err(format!(
                    "{missing} agents are missing after {:?}; last error: {why}",
                    wait::timeout()
                ));
            }
            sleep(PACE).await;
        }
    }

    /// Waits until the client's endpoints are those of the healthy agents, and returns the time.
    ///
    /// # Errors
    /// The differences after `bound`.
    pub async fn until_endpoints_match(&self, bound: Duration) -> Result<Instant, String> {
        let wanted = self.wanted();
        let found = self.eds_client.until(bound, |state| state.endpoints == wanted).await;
        found.ok_or_else(|| {
            let state = self.eds_client.state();
            let count = |state: &BTreeMap<String, HashSet<SocketAddr>>| {
                state.values().map(HashSet::len).sum::<usize>()
            };
            let differ = wanted
                .iter()
                .filter(|(cluster, wanted)| state.endpoints.get(*cluster) != Some(wanted))
                .count();
            let (found, wanted) = (state.total(), count(&wanted));
            format!("expected {wanted} endpoints, got {found}; {differ} clusters differ after {bound:?}")
        })
    }

    fn wanted(&self) -> BTreeMap<String, HashSet<SocketAddr>> {
        let services = 0..self.settings.services;
        let mut wanted: BTreeMap<_, HashSet<_>> =
            services.map(|service| (cluster(service), HashSet::new())).collect();
        for agent in (0..self.settings.agents).filter(|agent| self.fleet.is_healthy(*agent)) {
            let endpoint = SocketAddr::new(address(agent), PORT);
            wanted.entry(cluster(agent % self.settings.services)).or_default().insert(endpoint);
        }
        wanted
    }
}

/// Returns the memory of a process once two readings in a row are equal, in bytes.
async fn steady_memory(process: Process) -> u64 {
    let mut memory = process.rss();
    loop {
        sleep(READING).await;
        let now = process.rss();
        if now == memory {
            return memory;
        }
        memory = now;
    }
}
