//! Runs that take minutes or a million requests, with their counts as arguments: a few of each in the tests, all of
//! it in the stress recipe. They assert what happens, never how fast; figures come back as rows.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use kit::envoy::{Envoy, Version, folder};
use kit::plain;
use kit::pod::Pod;
use kit::process::Process;
use kit::report::Row;

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

/// A growth of Envoy's memory below this is no leak, in bytes.
const FLAT: u64 = 1 << 20;
/// The kernel counts whole pages, and the allocator keeps some: a bound for resident memory, in bytes.
const FLAT_RSS: u64 = 12 << 20;

/// How a Pod's Envoy differs from the shipped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The shipped rate limit of each source.
    Shipped,
    /// None that anybody reaches.
    Raised,
}

/// A Pod at `ip`, with this table of probers.
async fn pod_at(name: &str, ip: IpAddr, probers: &Value, limit: Limit) -> Pod {
    let bootstrap = Pod::bootstrap(name, ip, probers);
    let mut rendered = serde_json::from_str(&bootstrap.render()).expect("a bootstrap is JSON");
    if limit == Limit::Raised {
        plain::raise_rate_limit(&mut rendered);
    }
    let envoy = Envoy::start(Version::Newest, folder(name), &rendered, 1).await;
    Pod { ip, listener: bootstrap.probe_address, envoy }
}

/// What Envoy holds, in bytes.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// By its allocator's own count.
    allocated: u64,
    /// Resident; the VMs of filters are in it too.
    rss: u64,
}

impl Memory {
    async fn of(envoy: &Envoy) -> Self {
        let text = envoy.admin("/memory").await.expect("the admin port answers");
        let memory: Value = serde_json::from_str(&text).expect("/memory is JSON");
        let allocated = memory["allocated"].as_str().and_then(|text| text.parse().ok());
        Self { allocated: allocated.expect("a number of bytes"), rss: Process::new(envoy.pid()).rss() }
    }

    /// Asserts that no more than noise has come since `before`; the growth as rows.
    fn is_flat_since(self, before: Self) -> [Row; 2] {
        let kib = |before: u64, after: u64| {
            let difference =
                i64::try_from(after >> 10).expect("KiB") - i64::try_from(before >> 10).expect("KiB");
            f64::from(i32::try_from(difference).expect("less than 2 TiB"))
        };
        assert!(self.allocated < before.allocated + FLAT, "allocated: {before:?} before, {self:?} after");
        assert!(self.rss < before.rss + FLAT_RSS, "resident: {before:?} before, {self:?} after");
        [
            Row::new("growth of Envoy's allocated memory", kib(before.allocated, self.allocated), "KiB"),
            Row::new("growth of Envoy's resident memory", kib(before.rss, self.rss), "KiB"),
        ]
    }
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}: not within 20 s");
}

/// Waits until these gauges are 0.
async fn until_zero(envoy: &Envoy, gauges: &[&str]) {
    for gauge in gauges {
        until(gauge, async || envoy.stat(gauge).await == Some(0)).await;
    }
}

/// A POST to the admin socket: what changes anything is asked for so.
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
