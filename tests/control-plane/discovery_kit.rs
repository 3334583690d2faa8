//! Discovery as a process, certificates for it, and a peer that speaks ADS over mutual TLS.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use envoy_types::pb::google::rpc::Status as RpcStatus;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use crate::webhook_kit::{self, Ca, page};

pub(crate) fn binary() -> PathBuf {
    kit::agent::binary_of("app-health")
}
/// The name in the server's certificate.
pub(crate) const NAME: &str = "discovery.test";
pub(crate) const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
pub(crate) const HEALTH: &str = "type.googleapis.com/istio.v1.HealthInformation";
/// The assignment that tests look at.
pub(crate) const PAY: &str = "outbound|80||pay.shop";
pub(crate) const PAYMENTS: &str = "spiffe://cluster.local/ns/shop/sa/payments";
pub(crate) const GATEWAY: &str = "spiffe://cluster.local/ns/shop/sa/gateway";
pub(crate) const CLIENT: [(&str, &str); 1] = [("NAMESPACE", "shop")];
/// What nobody should wait for longer.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// The largest answer that is read.
const ANSWER: usize = 64 << 20;
/// In which nothing is expected to come.
pub(crate) const SHORT: Duration = Duration::from_millis(700);

const MESH: &str = "
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: pay, namespace: shop }
spec:
  hosts: [ pay.shop ]
  resolution: STATIC
  ports: [ { number: 80, name: http, protocol: HTTP } ]
  workloadSelector: { labels: { app: payments } }
---
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: { name: payments, namespace: shop }
spec:
  metadata: { labels: { app: payments } }
  template: { ports: { http: 8080 }, serviceAccount: payments }
  probe: { httpGet: { path: /readyz, port: 8080 } }
";

/// A running discovery with its files; ended when it is dropped.
pub(crate) struct Discovery {
    child: Child,
    pub(crate) folder: PathBuf,
    pub(crate) ca: Ca,
    pub(crate) secure: SocketAddr,
    pub(crate) monitoring: SocketAddr,
}

impl Discovery {
    pub(crate) fn start(name: &str, flags: &[&str]) -> Self {
        Self::start_by(Command::new(binary()), name, flags)
    }

    /// By another program, which becomes discovery with what is behind its own words.
    pub(crate) fn start_by(command: Command, name: &str, flags: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("app-health-discovery-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("mesh")).expect("a folder");
        fs::write(folder.join("mesh/shop.yaml"), MESH).expect("a file");
        let ca = Ca::new("of the mesh");
        fs::write(folder.join("ca.crt"), &ca.pem).expect("a file");
        webhook_kit::write_pair(&folder, &ca.sign("discovery", &[NAME]));
        let (child, secure, monitoring) = spawn(command, &folder, flags);
        Self { child, folder, ca, secure, monitoring }
    }

    /// Another process with the same files, after this one has ended.
    pub(crate) fn start_again(&mut self, flags: &[&str]) {
        (self.child, self.secure, self.monitoring) = spawn(Command::new(binary()), &self.folder, flags);
    }

    /// A client certificate for an identity.
    pub(crate) fn identity(&self, uri: &str) -> Arc<ClientConfig> {
        self.trusting(Some(&self.ca.sign_uri(uri, None)))
    }

    pub(crate) fn trusting(&self, own: Option<&(String, String)>) -> Arc<ClientConfig> {
        webhook_kit::client(&self.ca.pem, own)
    }

    /// A page of the monitoring port.
    pub(crate) fn page(&self, path: &str) -> String {
        page(self.monitoring, path).expect("an answer").1
    }

    /// Resident memory, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Soft and hard limit of open files.
    pub(crate) fn descriptors(&self) -> Vec<String> {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.child.id())).expect("it lives");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a line");
        line.split_whitespace().take(2).map(str::to_owned).collect()
    }

    /// The port without TLS, where flags ask for one.
    pub(crate) fn plaintext(&self) -> SocketAddr {
        address(&self.folder, "in plaintext")
    }

    pub(crate) fn terminate(&self) {
        let kill = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill");
        assert!(kill.success());
    }

    /// The exit code, once it has ended.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The flags that name the files of a folder.
pub(crate) fn files(folder: &Path) -> Vec<OsString> {
    let files = [
        ("--tls-cert", "tls.crt"),
        ("--tls-key", "tls.key"),
        ("--client-ca", "ca.crt"),
        ("--config-dir", "mesh"),
        ("--store-path", "store.redb"),
    ];
    files.into_iter().flat_map(|(flag, name)| [flag.into(), folder.join(name).into_os_string()]).collect()
}

fn spawn(mut command: Command, folder: &Path, flags: &[&str]) -> (Child, SocketAddr, SocketAddr) {
    let child = command
        .args(["discovery", "--listen", "127.0.0.1:0", "--monitoring-address", "127.0.0.1:0"])
        .args(files(folder))
        .args(flags)
        // As the webhook is shipped: what is free goes back to the system.
        .envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")])
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("log")).expect("a log"))
        .spawn()
        .expect("the binary starts");
    (child, address(folder, "over mutual TLS"), address(folder, "for monitoring"))
}

/// The address that a line of the log tells.
fn address(folder: &Path, what: &str) -> SocketAddr {
    for _ in 0..400 {
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        let line = log.lines().find(|line| line.contains(what) && line.ends_with(char::is_numeric));
        if let Some(address) = line.and_then(|line| line.rsplit_once("address=")) {
            return address.1.parse().expect("an address");
        }
        sleep(Duration::from_millis(50));
    }
    panic!("no address: {:?}", fs::read_to_string(folder.join("log")));
}

/// A connection over mutual TLS.
pub(crate) async fn connect(
    source: [u8; 4],
    address: SocketAddr,
    tls: Arc<ClientConfig>,
) -> Result<Channel, Status> {
    let connector = tower::service_fn(move |_| {
        let tls = TlsConnector::from(tls.clone());
        async move {
            let socket = TcpSocket::new_v4()?;
            socket.bind((source, 0).into())?;
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from(NAME).expect("a name");
            Ok::<_, std::io::Error>(TokioIo::new(tls.connect(name, stream).await?))
        }
    });
    let channel = Endpoint::from_static("http://discovery.test").connect_with_connector(connector).await;
    channel.map_err(|error| Status::unavailable(format!("{error:?}")))
}

/// A stream.
pub(crate) struct Peer {
    pub(crate) requests: mpsc::Sender<DiscoveryRequest>,
    answers: Streaming<DiscoveryResponse>,
    _channel: Channel,
}

impl Peer {
    /// Connects, and sends the first request.
    pub(crate) async fn open(
        address: SocketAddr,
        tls: Arc<ClientConfig>,
        first: DiscoveryRequest,
    ) -> Result<Self, Status> {
        Self::open_from([127, 0, 0, 1], address, tls, first).await
    }

    /// The same from an address of this machine.
    pub(crate) async fn open_from(
        source: [u8; 4],
        address: SocketAddr,
        tls: Arc<ClientConfig>,
        first: DiscoveryRequest,
    ) -> Result<Self, Status> {
        let channel = connect(source, address, tls).await?;
        let (requests, mut receiver) = mpsc::channel(16);
        requests.send(first).await.expect("room");
        let outgoing = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
        let client = AggregatedDiscoveryServiceClient::new(channel.clone());
        let mut client = client.max_decoding_message_size(ANSWER);
        let answers = client.stream_aggregated_resources(outgoing).await?.into_inner();
        Ok(Self { requests, answers, _channel: channel })
    }

    pub(crate) async fn send(&self, request: DiscoveryRequest) {
        self.requests.send(request).await.expect("the stream stands");
    }

    /// The next answer, or how the stream ended.
    pub(crate) async fn next(&mut self) -> Result<DiscoveryResponse, Status> {
        let answer = timeout(LONG, self.answers.message()).await.expect("an answer in time")?;
        answer.ok_or_else(|| Status::ok("ended"))
    }

    /// Whether nothing comes for a while.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        timeout(SHORT, self.answers.message()).await.is_err()
    }

    /// Reads assignments, acknowledging each, until one has so many bytes more than the empty one, or none.
    pub(crate) async fn assignment(&mut self, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        loop {
            let answer = self.next().await.expect("the stream stands");
            let bytes = answer.resources[0].value.clone();
            self.send(acknowledgement(&answer)).await;
            if wanted(&bytes) {
                return bytes;
            }
        }
    }
}

pub(crate) fn acknowledgement(answer: &DiscoveryResponse) -> DiscoveryRequest {
    DiscoveryRequest {
        version_info: answer.version_info.clone(),
        type_url: answer.type_url.clone(),
        response_nonce: answer.nonce.clone(),
        resource_names: if answer.type_url == EDS { vec![PAY.to_owned()] } else { Vec::new() },
        ..DiscoveryRequest::default()
    }
}

pub(crate) fn request(type_url: &str, names: &[&str], metadata: &[(&str, &str)]) -> DiscoveryRequest {
    let text = |text: &str| Value { kind: Some(Kind::StringValue(text.to_owned())) };
    let fields = metadata.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect();
    let node = Node {
        id: "sidecar~10.0.0.7~vm-7.shop~shop.svc.cluster.local".to_owned(),
        metadata: Some(Struct { fields }),
        ..Node::default()
    };
    DiscoveryRequest {
        node: (!metadata.is_empty()).then_some(node),
        type_url: type_url.to_owned(),
        resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..DiscoveryRequest::default()
    }
}

/// A report as Istio's agent sends it; an empty text is healthy.
pub(crate) fn health(text: &str) -> DiscoveryRequest {
    let error_detail =
        (!text.is_empty()).then(|| RpcStatus { code: 13, message: text.to_owned(), details: Vec::new() });
    DiscoveryRequest { error_detail, ..request(HEALTH, &[], &[]) }
}

/// What a machine of the group says of itself.
pub(crate) const MACHINE: [(&str, &str); 4] = [
    ("NAMESPACE", "shop"),
    ("SERVICE_ACCOUNT", "payments"),
    ("INSTANCE_IPS", "10.0.0.7"),
    ("AUTO_REGISTER_GROUP", "payments"),
];

/// The address of the one machine, as bytes of an assignment.
pub(crate) fn has_machine(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|part| part == b"10.0.0.7")
}

/// Who asks for the assignment.
pub(crate) async fn client(discovery: &Discovery) -> Peer {
    let first = request(EDS, &[PAY], &CLIENT);
    Peer::open(discovery.secure, discovery.identity(GATEWAY), first).await.expect("a client")
}

/// Istio's agent: its Envoy's first question, then health.
pub(crate) async fn reporter(discovery: &Discovery) -> Peer {
    let first = request("type.googleapis.com/envoy.config.listener.v3.Listener", &[], &MACHINE);
    Peer::open(discovery.secure, discovery.identity(PAYMENTS), first).await.expect("a reporter")
}
