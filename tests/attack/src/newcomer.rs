//! Honest Envoys and agents that connect to discovery one after the other, each from an address of its
//! own, until they have what they need.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use kit::net;
use kit::vm::ads_client::{AdsClient, request};
use kit::vm::certificates::DISCOVERY_NAME;
use kit::vm::fleet::{Fleet, FleetSettings, NAMESPACE, cluster};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tonic::Status;
use xds::type_url::ENDPOINT;
use xds::{Node, Request, Variant};

use crate::network;
use crate::request::Verdict;

/// The bar: the time in which a newcomer must be connected.
pub const JOINED: Duration = Duration::from_secs(5);
/// Flow-control window of an Envoy, in bytes.
const WINDOW: u32 = 1 << 20;
const POLL: Duration = Duration::from_millis(10);
/// The number of the first agent, above those of the fleet.
const FIRST_AGENT: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Connects and receives the endpoints of a service.
    Envoy,
    /// Connects, registers its machine, and has a report acknowledged.
    Agent,
}

pub struct Newcomer {
    pub row: &'static str,
    pub kind: Kind,
    /// The server, and the certificates.
    settings: FleetSettings,
    next: AtomicU32,
}

impl Newcomer {
    /// Returns newcomers at the server of a fleet.
    pub fn new(row: &'static str, kind: Kind, fleet: &FleetSettings) -> Self {
        let settings = FleetSettings { agents: 1, ramp: Duration::ZERO, ..fleet.clone() };
        Self { row, kind, settings, next: AtomicU32::new(FIRST_AGENT) }
    }

    /// Connects, and disconnects when everything is received.
    pub async fn join(&self) -> Verdict {
        let mut why = format!("not connected within {JOINED:?}");
        let joined = async {
            match self.kind {
                Kind::Envoy => self.envoy().await.map_err(|status| status.to_string()),
                Kind::Agent => {
                    self.agent(&mut why).await;
                    Ok(())
                }
            }
        };
        match timeout(JOINED, joined).await {
            Ok(Ok(())) => Verdict::Expected,
            Ok(Err(error)) => Verdict::Lost(error),
            Err(_) => Verdict::Lost(why),
        }
    }

    async fn envoy(&self) -> Result<(), Status> {
        let names = [cluster(0)];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ip = if self.settings.server.is_ipv4() { net::loopback() } else { network::honest() };
        let source = SocketAddr::new(ip, 0);
        let first = Request { node: Some(node(&source.ip().to_string())), ..request(ENDPOINT, &names) };
        let account = self.settings.tls.len() - 1;
        let mut client = open(&self.settings, account, source, WINDOW, &first).await?;
        client.next().await.map(drop)
    }

    /// Notes in `why` what the agent reports.
    async fn agent(&self, why: &mut String) {
        let fleet = Fleet::single(&self.settings, self.next.fetch_add(1, Ordering::Relaxed));
        while fleet.stats.registered().is_empty() {
            if let Some(failure) = fleet.stats.failure() {
                *why = failure;
            }
            sleep(POLL).await;
        }
    }
}

/// Opens a stream with the certificate of an account, by its number, from this address.
///
/// # Errors
/// If the server accepts no connection or no stream.
///
/// # Panics
/// If there is no such account.
pub async fn open(
    settings: &FleetSettings,
    account: usize,
    source: SocketAddr,
    window: u32,
    first: &Request,
) -> Result<AdsClient, Status> {
    let connect = async {
        let socket = if source.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.bind(source)?;
        let stream = socket.connect(settings.server).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(DISCOVERY_NAME).expect("a name");
        TlsConnector::from(Arc::clone(&settings.tls[account])).connect(name, stream).await
    };
    let stream = connect.await.map_err(|error: std::io::Error| Status::unavailable(error.to_string()))?;
    AdsClient::open(stream, Variant::Sotw, window, first).await
}

fn node(address: &str) -> Bytes {
    let id = format!("sidecar~{address}~envoy.{NAMESPACE}~{NAMESPACE}.svc.cluster.local");
    Node { id, metadata: json!({ "NAMESPACE": NAMESPACE }), ..Node::default() }.encode()
}
