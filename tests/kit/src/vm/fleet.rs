//! Many agents in one process: each with the agent's own reporter, its own messages, and a connection (TCP, TLS, HTTP/2) from an address
//! of its own. What is left out is the probing: a test says what each workload's health is.

mod crowd;
mod documents;
mod member;
mod observer;
mod tally;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app_health_agent::report::tls::{San, TlsFiles};
use rustls::ClientConfig;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::certificates::{Authority, DISCOVERY_NAME};
pub use crowd::{Crowd, Size};
pub use documents::{ACCOUNTS, NAMESPACE, cluster, documents};
use member::Member;
pub use observer::{Observer, Push, Sets, Shrink};
pub use tally::Tally;

/// What a fleet looks like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where discovery listens.
    pub server: SocketAddr,
    /// How many agents.
    pub agents: u32,
    /// The services that they belong to, in turn.
    pub services: u32,
    /// What each says again after so long.
    pub heartbeat: Duration,
    /// The first attempts are spread evenly over this.
    pub ramp: Duration,
    /// What each service account shows, by its number; none: plaintext.
    pub tls: Vec<Arc<ClientConfig>>,
}

/// The agents; their connections close when this is dropped, as those of killed ones.
pub struct Fleet {
    /// What they went through.
    pub tally: Arc<Tally>,
    wishes: Vec<watch::Sender<bool>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Fleet {
    /// Starts all of them, healthy.
    ///
    /// # Panics
    /// Without services, or outside a tokio runtime.
    pub fn start(plan: &Plan) -> Self {
        let tally = Arc::new(Tally::new(plan.agents));
        let (mut wishes, mut tasks) = (Vec::new(), Vec::new());
        for number in 0..plan.agents {
            let (wish, wished) = watch::channel(true);
            let delay = plan.ramp * number / plan.agents.max(1);
            let member = Member::new(number, plan, wished, Arc::clone(&tally));
            tasks.push(AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                member.live().await;
            })));
            wishes.push(wish);
        }
        Self { tally, wishes, _tasks: tasks }
    }

    /// From now on this workload is healthy, or not.
    ///
    /// # Panics
    /// When there is no such agent.
    pub fn behave(&self, agent: u32, healthy: bool) {
        self.wishes[agent as usize].send_replace(healthy);
    }

    /// Is this workload healthy?
    ///
    /// # Panics
    /// When there is no such agent.
    pub fn is_healthy(&self, agent: u32) -> bool {
        *self.wishes[agent as usize].borrow()
    }
}

/// The address of an agent: what it connects from, and its endpoint.
///
/// # Panics
/// After 65,536 agents.
pub fn address(agent: u32) -> IpAddr {
    let [0, 0, high, low] = agent.to_be_bytes() else { panic!("no addresses are left") };
    // Beyond what the tests take for themselves.
    IpAddr::V4(Ipv4Addr::new(127, 250, high, low))
}

/// What the service accounts of a fleet show, for [`Plan::tls`].
///
/// # Panics
/// When the folder cannot be written.
pub fn clients(authority: &Authority, folder: &Path) -> Vec<Arc<ClientConfig>> {
    let san = San::new(DISCOVERY_NAME, DISCOVERY_NAME).expect("a DNS name");
    let client = |account: &&str| {
        let files = authority.workload(folder, account, NAMESPACE, account);
        let files = TlsFiles { ca: files.authority, cert: files.certificate, key: files.key };
        let content = files.read().expect("files that were written just now");
        content.client(&san).expect("certificates that fit")
    };
    ACCOUNTS.iter().map(client).collect()
}
