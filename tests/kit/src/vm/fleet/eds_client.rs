//! An ADS client that receives the endpoints of a fleet like an Envoy, and records the time of
//! every response. It keeps its endpoints while it is disconnected, and reports their versions when
//! it reconnects.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::{address, socket_address};
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint, lb_endpoint};
use hyper::body::Bytes;
use prost::Message as _;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use xds::type_url::ENDPOINT;
use xds::{Malformed, Node, Request, Response, Variant, parse_any};

use crate::vm::ads_client::{AdsClient, acknowledgement, request};

/// Pause before the next connection attempt.
const PAUSE: Duration = Duration::from_millis(200);
/// Flow-control window in bytes.
const WINDOW: u32 = 2 << 20;

#[derive(Clone, Copy, Debug)]
pub struct Push {
    pub at: Instant,
    /// The size of its resources, in bytes.
    pub bytes: usize,
}

/// A response that removed endpoints of a cluster.
#[derive(Clone, Debug)]
pub struct Removal {
    pub at: Instant,
    pub cluster: String,
    /// The number of removed endpoints.
    pub lost: usize,
}

/// The state of the client.
#[derive(Clone, Debug, Default)]
pub struct EdsState {
    /// The endpoints of each cluster.
    pub endpoints: BTreeMap<String, HashSet<SocketAddr>>,
    /// All responses so far.
    pub pushes: Vec<Push>,
    /// All removals so far.
    pub removals: Vec<Removal>,
    version: String,
}

impl EdsState {
    /// Returns the total number of endpoints.
    pub fn total(&self) -> usize {
        self.endpoints.values().map(HashSet::len).sum()
    }

    fn take(&mut self, response: &Response) -> Result<(), Status> {
        let at = Instant::now();
        let malformed = |error: Malformed| Status::internal(error.to_string());
        let values =
            response.resources.iter().map(|resource| Ok(parse_any(&resource.any).map_err(malformed)?.1));
        let values: Vec<_> = values.collect::<Result<_, Status>>()?;
        self.pushes.push(Push { at, bytes: values.iter().map(Bytes::len).sum() });
        for value in values {
            let assignment = ClusterLoadAssignment::decode(value);
            let assignment = assignment.map_err(|error| Status::internal(error.to_string()))?;
            let cluster = assignment.cluster_name;
            let localities = assignment.endpoints.into_iter();
            let found =
                localities.flat_map(|locality| locality.lb_endpoints).filter_map(socket_address_of).collect();
            let before = self.endpoints.insert(cluster.clone(), found).unwrap_or_default();
            let lost = before.difference(&self.endpoints[&cluster]).count();
            if lost > 0 {
                self.removals.push(Removal { at, cluster, lost });
            }
        }
        self.version.clone_from(&response.version);
        Ok(())
    }
}

fn socket_address_of(endpoint: LbEndpoint) -> Option<SocketAddr> {
    let Some(lb_endpoint::HostIdentifier::Endpoint(endpoint)) = endpoint.host_identifier else { return None };
    let Some(address::Address::SocketAddress(address)) = endpoint.address?.address else { return None };
    let Some(socket_address::PortSpecifier::PortValue(port)) = address.port_specifier else { return None };
    Some(SocketAddr::new(address.address.parse().ok()?, u16::try_from(port).ok()?))
}

/// The client; dropping this closes its connection.
pub struct EdsClient {
    state: watch::Receiver<EdsState>,
    _task: AbortOnDropHandle<()>,
}

impl EdsClient {
    /// Subscribes at `server`, in plaintext, to the endpoints of these clusters, as a client in
    /// `namespace`.
    pub fn start(server: SocketAddr, namespace: &str, clusters: Vec<String>) -> Self {
        let (sender, state) = watch::channel(EdsState::default());
        let namespace = namespace.to_owned();
        let task = tokio::spawn(async move {
            loop {
                // The server may be down or exit during a measurement.
                let _ = watch_server(server, &namespace, &clusters, &sender).await;
                sleep(PAUSE).await;
            }
        });
        Self { state, _task: AbortOnDropHandle::new(task) }
    }

    /// Returns the current state.
    pub fn state(&self) -> watch::Ref<'_, EdsState> {
        self.state.borrow()
    }

    /// Waits until `is_wanted` is true for the state, and returns the time; `None` after `bound`.
    ///
    /// # Panics
    /// If the observing task has ended.
    pub async fn until(&self, bound: Duration, is_wanted: impl FnMut(&EdsState) -> bool) -> Option<Instant> {
        let mut state = self.state.clone();
        let found = timeout(bound, state.wait_for(is_wanted)).await.ok()?;
        drop(found.expect("the observing task runs"));
        Some(Instant::now())
    }
}

async fn watch_server(
    server: SocketAddr,
    namespace: &str,
    clusters: &[String],
    state: &watch::Sender<EdsState>,
) -> Result<Infallible, Status> {
    let stream = TcpStream::connect(server).await.map_err(|error| Status::unavailable(error.to_string()))?;
    let names: Vec<&str> = clusters.iter().map(String::as_str).collect();
    let version = state.borrow().version.clone();
    let first = Request { version, node: Some(node(namespace)), ..request(ENDPOINT, &names) };
    let mut client = AdsClient::open(stream, Variant::Sotw, WINDOW, &first).await?;
    loop {
        let response = client.next().await?;
        let mut taken = Ok(());
        state.send_modify(|state| taken = state.take(&response));
        taken?;
        client.send(&acknowledgement(&response, &names)).await?;
    }
}

fn node(namespace: &str) -> Bytes {
    let id = format!("sidecar~127.0.0.1~eds-client.{namespace}~{namespace}.svc.cluster.local");
    let (metadata, program) = (json!({ "NAMESPACE": namespace }), "eds-client".to_owned());
    Node { id, metadata, program, ..Node::default() }.encode()
}
