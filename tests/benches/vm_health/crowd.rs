//! A server, a crowd of agents that report to it, and a client that reads their endpoints.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use tests::envoy;
use tests::process::Process;
use tests::vm::certificates::{Authority, DISCOVERY_NAME};
use tests::vm::discovery::Discovery;
use tests::vm::fleet::{self, Fleet, Observer, Plan, address, cluster, documents};
use tokio::time::{Instant, sleep};

use crate::arguments::Arguments;
use crate::{Failure, say};

/// New agents a second, at first.
const ARRIVALS: u32 = 300;
/// Everybody is there after so long, or will never be.
const PATIENCE: Duration = Duration::from_secs(180);
const PORT: u16 = 8080;

/// All of them.
pub(crate) struct Crowd {
    pub(crate) discovery: Discovery,
    pub(crate) fleet: Fleet,
    pub(crate) observer: Observer,
    pub(crate) plan: Plan,
    /// Memory of the server before anybody came, in bytes.
    pub(crate) base: u64,
}

impl Crowd {
    /// Starts the server and waits until every agent has registered and every endpoint is there.
    pub(crate) async fn start(arguments: &Arguments, heartbeat: Duration) -> Result<Self, Failure> {
        let Arguments { agents, services, .. } = *arguments;
        let folder = envoy::folder(&format!("b-crowd-{}", heartbeat.as_secs()));
        let authority = Authority::new();
        let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
        let mut discovery = Discovery::new(&folder, &documents(services)).tls(&files);
        discovery.start().await?;
        sleep(Duration::from_secs(2)).await;
        let base = Process::new(discovery.pid().as_raw().unsigned_abs()).rss();
        let plan = Plan {
            server: discovery.secure(),
            agents,
            services,
            heartbeat,
            ramp: Duration::from_secs(1) * agents / ARRIVALS,
            tls: fleet::clients(&authority, &folder),
        };
        let clusters = (0..services).map(cluster).collect();
        let observer = Observer::start(discovery.plaintext(), fleet::NAMESPACE, clusters);
        say(&format!("{agents} agents register"));
        let fleet = Fleet::start(&plan);
        let crowd = Self { discovery, fleet, observer, plan, base };
        crowd.until_registered(Duration::ZERO).await?;
        crowd.until_exact(PATIENCE).await?;
        say(&format!("registered after {:?}", crowd.fleet.tally.now()));
        Ok(crowd)
    }

    /// The server's process of this moment.
    pub(crate) fn process(&self) -> Process {
        Process::new(self.discovery.pid().as_raw().unsigned_abs())
    }

    /// Waits until every agent has had a report acknowledged on a stream that is younger than `since`: when, for each.
    pub(crate) async fn until_registered(&self, since: Duration) -> Result<Vec<Duration>, Failure> {
        let begin = Instant::now();
        loop {
            let mut times = self.fleet.tally.registered();
            times.retain(|time| *time >= since);
            if times.len() == self.plan.agents as usize {
                return Ok(times);
            }
            if begin.elapsed() > PATIENCE {
                let why = self.fleet.tally.failure().unwrap_or_default();
                let missing = self.plan.agents as usize - times.len();
                return Err(format!("{missing} agents are not there after {PATIENCE:?}; the last failure: {why}").into());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the endpoints are those of the healthy agents: when that was.
    pub(crate) async fn until_exact(&self, bound: Duration) -> Result<Instant, Failure> {
        let wanted = self.wanted();
        let found = self.observer.until(bound, |sets| sets.endpoints == wanted).await;
        found.ok_or_else(|| {
            let (found, wanted) = (self.observer.sets().total(), wanted.values().map(HashSet::len).sum::<usize>());
            format!("{found} endpoints, not the {wanted} wanted, after {bound:?}").into()
        })
    }

    fn wanted(&self) -> BTreeMap<String, HashSet<SocketAddr>> {
        let mut wanted: BTreeMap<_, HashSet<_>> =
            (0..self.plan.services).map(|service| (cluster(service), HashSet::new())).collect();
        for agent in (0..self.plan.agents).filter(|agent| self.fleet.is_healthy(*agent)) {
            let endpoint = SocketAddr::new(address(agent), PORT);
            wanted.entry(cluster(agent % self.plan.services)).or_default().insert(endpoint);
        }
        wanted
    }
}
