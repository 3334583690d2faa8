//! Discovery with machines of two kinds: entries without an agent, and simulated agents.

use std::fmt::Write as _;
use std::time::Duration;

use kit::envoy;
use kit::events::EventStream;
use kit::vm::discovery::Discovery;
use kit::vm::fleet::{self, Fleet, FleetSettings};

/// Number of entries of one file, which may have 1 MiB at most.
const ENTRIES_PER_FILE: usize = 1000;

/// A running discovery server with its machines, which are stopped on drop.
pub struct Mesh {
    pub discovery: Discovery,
    /// The simulated agents, by number.
    pub fleet: Fleet,
    /// Number of all machines.
    pub machines: usize,
}

impl Mesh {
    /// Starts discovery and waits until it has all machines; `name` is that of the test.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(name: &str, entries: usize, agents: u32) -> Self {
        const SERVICES: u32 = 2;
        let folder = envoy::folder(name);
        let mut discovery = Discovery::new(&folder, &fleet::documents(SERVICES));
        for first in (0..entries).step_by(ENTRIES_PER_FILE) {
            let last = entries.min(first + ENTRIES_PER_FILE);
            discovery.configure_file(&format!("entries-{first}.yaml"), &documents(first..last));
        }
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let fleet = Fleet::start(&FleetSettings {
            server: discovery.plaintext(),
            agents,
            services: SERVICES,
            heartbeat: Duration::from_secs(10),
            ramp: Duration::from_millis(1) * agents,
            tls: Vec::new(),
        });
        let machines = entries + agents as usize;
        let mesh = Self { discovery, fleet, machines };
        let mut events = mesh.events().await;
        events.until("all machines", |event| event["counts"]["all"] == machines).await;
        mesh
    }

    /// Opens the stream of the page's events.
    ///
    /// # Panics
    /// If discovery refuses it.
    pub async fn events(&self) -> EventStream {
        EventStream::open(self.discovery.monitoring(), "/events").await.expect("a stream")
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.discovery.monitoring())
    }
}

fn documents(entries: std::ops::Range<usize>) -> String {
    let mut text = String::new();
    for entry in entries {
        let [high, low] = [entry >> 8, entry & 255];
        let _ = writeln!(
            text,
            "---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\n\
             metadata: {{ name: m{entry:05}, namespace: shop }}\n\
             spec: {{ address: 10.1.{high}.{low}, labels: {{ app: payments }} }}"
        );
    }
    text
}
