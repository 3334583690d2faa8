//! The attacks on each component.

pub mod discovery;
mod http;
pub mod sidecar;
pub mod web_page;
pub mod webhook;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kit::load::kubelet_request;

use crate::honest::HonestClient;
use crate::hostile::HostileClients;
use crate::measurement::sources;
use crate::request::{Expectation, Request};

/// kubelet's default `timeoutSeconds`.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The bar for `/healthz/live` during an attack.
const LIVE_BAR: Duration = Duration::from_millis(100);
/// The row of liveness probes of the webhook and of discovery.
const LIVE: &str = "/healthz/live";

/// The number of sources up to which an attack is one of few. Attacks of more sources
/// get processes of their own, so that the memory that they take does not hide what few sources take.
pub const FEW: u64 = 2;

/// Returns the attacks of few or of many sources, those of one source first: memory that an attack took
/// counts for all later ones.
fn of_size<T>(attacks: Vec<T>, many: bool, hostile: impl Fn(&T) -> &[HostileClients]) -> Vec<T> {
    let sources = |attack: &T| sources(hostile(attack));
    let mut attacks: Vec<T> = attacks.into_iter().filter(|attack| (sources(attack) > FEW) == many).collect();
    attacks.sort_by_key(sources);
    attacks
}

#[derive(Clone, Copy, Debug)]
pub struct Strength {
    /// The number of connections of each source address at the same time.
    pub connections: usize,
}

impl Strength {
    /// The number of source addresses of most attacks.
    const SOURCES: u32 = 4;
    /// Connections that each source opens per second.
    const PER_SECOND: u32 = 250;
}

/// Returns a client that sends kubelet's GET request for `path`.
pub(crate) fn get(row: &'static str, source: IpAddr, address: SocketAddr, path: &str) -> HonestClient {
    HonestClient {
        row,
        request: Request {
            source,
            address,
            tls: None,
            bytes: kubelet_request(address, path),
            deadline: PROBE_TIMEOUT,
            expectation: Expectation::status(200),
        },
        interval: Duration::from_millis(100),
    }
}

/// Returns kubelet's health checks of a monitoring port.
pub(crate) fn health_checks(source: IpAddr, monitoring: SocketAddr) -> Vec<HonestClient> {
    vec![
        get(LIVE, source, monitoring, "/healthz/live"),
        get("/healthz/ready", source, monitoring, "/healthz/ready"),
    ]
}

/// Returns a request on a connection that stays open.
pub(crate) fn keep_alive(address: SocketAddr, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()
}
