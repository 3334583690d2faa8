//! An ADS client that receives the endpoints of a fleet like an Envoy, and records the time of
//! every response. It keeps its endpoints while it is disconnected, and reports their versions when
//! it reconnects.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::{Node, address, socket_address};
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint, lb_endpoint};
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use prost::Message as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

const TYPE_URL: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Pause before the next connection attempt.
const PAUSE: Duration = Duration::from_millis(200);
/// The largest accepted response, in bytes.
const ANSWER: usize = 256 << 20;

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

    fn take(&mut self, response: DiscoveryResponse) -> Result<(), prost::DecodeError> {
        let at = Instant::now();
        let bytes = response.resources.iter().map(|resource| resource.value.len()).sum();
        self.pushes.push(Push { at, bytes });
        for resource in response.resources {
            let assignment = ClusterLoadAssignment::decode(resource.value.as_slice())?;
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
        self.version = response.version_info;
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
) -> Result<(), Status> {
    let client = AggregatedDiscoveryServiceClient::connect(format!("http://{server}")).await;
    let mut client =
        client.map_err(|error| Status::unavailable(error.to_string()))?.max_decoding_message_size(ANSWER);
    let (requests, sent) = mpsc::channel(4);
    let ask = |version: String, nonce: String, node| DiscoveryRequest {
        version_info: version,
        node,
        resource_names: clusters.to_vec(),
        type_url: TYPE_URL.to_owned(),
        response_nonce: nonce,
        ..DiscoveryRequest::default()
    };
    let version = state.borrow().version.clone();
    let first = ask(version, String::new(), Some(node(namespace)));
    requests.try_send(first).expect("an empty queue has room");
    let mut answers = client.stream_aggregated_resources(ReceiverStream::new(sent)).await?.into_inner();
    while let Some(answer) = answers.message().await? {
        let (version, nonce) = (answer.version_info.clone(), answer.nonce.clone());
        let mut taken = Ok(());
        state.send_modify(|state| taken = state.take(answer));
        taken.map_err(|error| Status::internal(error.to_string()))?;
        let acknowledged = requests.send(ask(version, nonce, None)).await;
        acknowledged.map_err(|_| Status::unavailable("the stream ended"))?;
    }
    Ok(())
}

fn node(namespace: &str) -> Node {
    let id = format!("sidecar~127.0.0.1~eds-client.{namespace}~{namespace}.svc.cluster.local");
    let value = Value { kind: Some(Kind::StringValue(namespace.to_owned())) };
    let metadata = Struct { fields: [("NAMESPACE".to_owned(), value)].into() };
    Node { id, user_agent_name: "eds-client".to_owned(), metadata: Some(metadata), ..Node::default() }
}
