//! A server, a fleet that reports to it, and a client that reads its endpoints.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::documents::PORT;
use super::{Fleet, NAMESPACE, Observer, Plan, address, clients, cluster, documents};
use crate::envoy;
use crate::process::Process;
use crate::vm::certificates::{Authority, DISCOVERY_NAME};
use crate::vm::discovery::Discovery;

/// Everybody is there after so long, or will never be.
const PATIENCE: Duration = Duration::from_secs(180);
/// Between two looks at who is there.
const PACE: Duration = Duration::from_millis(20);

/// How large it is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Agents.
    pub agents: u32,
    /// Services that they belong to, in turn.
    pub services: u32,
    /// New agents a second, at first.
    pub arrivals: u32,
    /// Between two reports of an agent.
    pub heartbeat: Duration,
}

/// All of them; whatever was started ends with it.
pub struct Crowd {
    /// The server.
    pub discovery: Discovery,
    /// The agents, over mutual TLS.
    pub fleet: Fleet,
    /// The client.
    pub observer: Observer,
    /// What the agents are.
    pub plan: Plan,
    /// Memory of the server before anybody came, in bytes.
    pub base: u64,
}

impl Crowd {
    /// Starts the server, and waits until every agent has registered and the client has every endpoint.
    ///
    /// # Errors
    /// What is missing, or why the server does not start.
    pub async fn start(name: &str, size: Size) -> Result<Self, String> {
        let Size { agents, services, arrivals, heartbeat } = size;
        let folder = envoy::folder(name);
        let authority = Authority::new();
        let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
        let mut discovery = Discovery::new(&folder, &documents(services)).tls(&files);
        discovery.start().await?;
        sleep(Duration::from_secs(1)).await;
        let base = Process::new(discovery.pid().as_raw().unsigned_abs()).rss();
        let plan = Plan {
            server: discovery.secure(),
            agents,
            services,
            heartbeat,
            ramp: Duration::from_secs(1) * agents / arrivals,
            tls: clients(&authority, &folder),
        };
        let observer =
            Observer::start(discovery.plaintext(), NAMESPACE, (0..services).map(cluster).collect());
        let fleet = Fleet::start(&plan);
        let crowd = Self { discovery, fleet, observer, plan, base };
        crowd.until_registered(Duration::ZERO).await?;
        crowd.until_exact(PATIENCE).await?;
        Ok(crowd)
    }

    /// The server's process of this moment.
    pub fn process(&self) -> Process {
        Process::new(self.discovery.pid().as_raw().unsigned_abs())
    }

    /// Waits until every agent has had a report acknowledged since then, on the stream that it has: the first time, for each.
    ///
    /// # Errors
    /// How many have not, after three minutes.
    pub async fn until_registered(&self, since: Duration) -> Result<Vec<Duration>, String> {
        let begin = Instant::now();
        loop {
            let mut times = self.fleet.tally.registered();
            times.retain(|time| *time >= since);
            let missing = (self.plan.agents as usize).saturating_sub(times.len());
            if missing == 0 {
                return Ok(times);
            }
            if begin.elapsed() > PATIENCE {
                let why = self.fleet.tally.failure().unwrap_or_default();
                return Err(format!(
                    "{missing} agents are missing after {PATIENCE:?}; the last failure: {why}"
                ));
            }
            sleep(PACE).await;
        }
    }

    /// Waits until the client's endpoints are those of the healthy agents: when that was.
    ///
    /// # Errors
    /// What there is after `bound`.
    pub async fn until_exact(&self, bound: Duration) -> Result<Instant, String> {
        let wanted = self.wanted();
        let found = self.observer.until(bound, |sets| sets.endpoints == wanted).await;
        found.ok_or_else(|| {
            let sets = self.observer.sets();
            let count =
                |sets: &BTreeMap<String, HashSet<SocketAddr>>| sets.values().map(HashSet::len).sum::<usize>();
            let differ = wanted
                .iter()
                .filter(|(cluster, wanted)| sets.endpoints.get(*cluster) != Some(wanted))
                .count();
            let (found, wanted) = (sets.total(), count(&wanted));
            format!("{found} endpoints, {wanted} wanted, {differ} clusters differ after {bound:?}")
        })
    }

    fn wanted(&self) -> BTreeMap<String, HashSet<SocketAddr>> {
        let services = 0..self.plan.services;
        let mut wanted: BTreeMap<_, HashSet<_>> =
            services.map(|service| (cluster(service), HashSet::new())).collect();
        for agent in (0..self.plan.agents).filter(|agent| self.fleet.is_healthy(*agent)) {
            let endpoint = SocketAddr::new(address(agent), PORT);
            wanted.entry(cluster(agent % self.plan.services)).or_default().insert(endpoint);
        }
        wanted
    }
}
