//! Long runs of minutes or a million requests, with their counts as arguments: the tests run a few
//! of each, the recipe `stress` all of them. They assert behavior and never speed; figures are
//! returned as rows.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use kit::envoy::{self, Envoy, Version, folder};
use kit::plain_listener;
use kit::pod::{self, Form, Pod, with_long_timeouts};
use kit::process::Process;
use kit::report::Row;
use kit::sidecar::{Builder, Sidecar};
use kit::wait::until;

pub mod drain;
pub mod flood;
pub mod gone;
pub mod mixed;
pub mod odd;
pub mod ports;
pub mod restarts;
pub mod slow;
pub mod swap;
pub mod timeouts;
pub mod trap;

/// Growth of Envoy's allocated memory below this is noise, in bytes.
const FLAT: u64 = 1 << 20;
/// Bound for growth of resident memory, in bytes: the kernel counts whole pages, and the allocator
/// keeps free ones.
const FLAT_RSS: u64 = 12 << 20;

/// The rate limit of a Pod's Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The shipped rate limit for each source.
    Shipped,
    /// A limit that is never reached.
    Raised,
}

/// What answers the probes of a Pod, in the form that the environment selects.
struct Served {
    listener: SocketAddr,
    answering: Answering,
}

enum Answering {
    Envoy(Envoy),
    /// The agent, and the number of its sockets before the first client.
    Agent(Sidecar, usize),
}

impl Served {
    /// Starts it at `ip` with this prober table, in which a probe without `timeoutSeconds` does not time out.
    /// The agent's limits are always the shipped ones.
    async fn start(name: &str, ip: IpAddr, probers: &Value, limit: Limit) -> Self {
        if pod::form() != Form::Agent {
            let Pod { listener, envoy, .. } = pod_at(name, ip, probers, limit).await;
            return Self { listener, answering: Answering::Envoy(envoy) };
        }
        let table = with_long_timeouts(probers.clone()).to_string();
        let builder = Builder::bare_at(name, ip).args(&["--probes", "agent"]);
        let builder = builder.env("ISTIO_KUBE_APP_PROBERS", &table);
        let sidecar = builder.watching(SocketAddr::new(ip, 15000)).start_plain();
        sidecar.until(503, "envoy not started").await;
        let sockets = process(&sidecar).sockets();
        Self { listener: envoy::probe_listener(ip), answering: Answering::Agent(sidecar, sockets) }
    }

    fn process(&self) -> Process {
        match &self.answering {
            Answering::Envoy(envoy) => Process::new(envoy.pid()),
            Answering::Agent(sidecar, _) => process(sidecar),
        }
    }

    fn log(&self) -> String {
        match &self.answering {
            Answering::Envoy(envoy) => envoy.log(),
            Answering::Agent(sidecar, _) => sidecar.log(),
        }
    }

    async fn memory(&self) -> Memory {
        match &self.answering {
            Answering::Envoy(envoy) => Memory::of(envoy).await,
            Answering::Agent(sidecar, _) => {
                let process = process(sidecar);
                Memory { allocated: process.anonymous(), rss: process.rss() }
            }
        }
    }

    /// Waits until these gauges of Envoy are 0, or until the agent has no more sockets than at its start.
    async fn until_idle(&self, gauges: &[&str]) {
        match &self.answering {
            Answering::Envoy(envoy) => until_zero(envoy, gauges).await,
            Answering::Agent(sidecar, sockets) => {
                until("no socket is left", async || process(sidecar).sockets() <= *sockets).await;
            }
        }
    }

    async fn stop(self) {
        if let Answering::Envoy(envoy) = self.answering {
            envoy.stop().await;
        }
    }
}

fn process(sidecar: &Sidecar) -> Process {
    Process::new(sidecar.pid().as_raw().unsigned_abs())
}

/// Starts a Pod at `ip` with this prober table, in which a probe without `timeoutSeconds` does not
/// time out.
async fn pod_at(name: &str, ip: IpAddr, probers: &Value, limit: Limit) -> Pod {
    let bootstrap = Pod::bootstrap(name, ip, &with_long_timeouts(probers.clone()));
    let mut rendered = serde_json::from_str(&bootstrap.render()).expect("a bootstrap is JSON");
    if limit == Limit::Raised {
        plain_listener::raise_rate_limit(&mut rendered);
    }
    let envoy = Envoy::start(Version::Newest, folder(name), &rendered, 1).await;
    Pod { ip, listener: bootstrap.probe_address, envoy }
}

/// Memory of what answers probes, in bytes.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// The count of Envoy's allocator, or the agent's pages that were written to.
    allocated: u64,
    /// Resident memory, which includes the VMs of filters.
    rss: u64,
}

impl Memory {
    async fn of(envoy: &Envoy) -> Self {
        let text = envoy.admin("/memory").await.expect("the admin port answers");
        let memory: Value = serde_json::from_str(&text).expect("/memory is JSON");
        let allocated = memory["allocated"].as_str().and_then(|text| text.parse().ok());
        Self { allocated: allocated.expect("a number of bytes"), rss: Process::new(envoy.pid()).rss() }
    }

    /// Asserts that memory has not grown by more than noise since `before`, and returns the growth
    /// as rows.
    fn is_flat_since(self, before: Self) -> [Row; 2] {
        let kib = |before: u64, after: u64| {
            let difference =
                i64::try_from(after >> 10).expect("KiB") - i64::try_from(before >> 10).expect("KiB");
            f64::from(i32::try_from(difference).expect("less than 2 TiB"))
        };
        assert!(self.allocated < before.allocated + FLAT, "allocated: {before:?} before, {self:?} after");
        assert!(self.rss < before.rss + FLAT_RSS, "resident: {before:?} before, {self:?} after");
        [
            Row::new("growth of allocated memory", kib(before.allocated, self.allocated), "KiB"),
            Row::new("growth of resident memory", kib(before.rss, self.rss), "KiB"),
        ]
    }
}

/// Waits until these gauges are 0.
async fn until_zero(envoy: &Envoy, gauges: &[&str]) {
    for gauge in gauges {
        envoy.until_stat(gauge, 0).await;
    }
}

/// Sends a POST to the admin socket, which Envoy requires for every change.
async fn post(envoy: &Envoy, path: &str) {
    let mut stream = UnixStream::connect(envoy.folder.join("admin.sock")).await.expect("the admin socket");
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: local\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the admin port reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the admin port answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn float(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
