//! Runs discovery as a process, with certificates, and provides an ADS client over mutual TLS.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kit::vm::ads_client::{self, AdsClient};
use kit::wait;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::Status;
use xds::type_url::LISTENER;
pub(crate) use xds::type_url::{CLUSTER as CDS, ENDPOINT as EDS, HEALTH_INFORMATION as HEALTH};
use xds::{Node, Request, Response, Variant};

use crate::webhook_support::{self, Ca, page};

pub(crate) fn binary() -> PathBuf {
    kit::agent::binary_of("app-health")
}
/// DNS name in the server's certificate.
pub(crate) const NAME: &str = "discovery.test";
/// Name of the assignment that most tests subscribe to.
pub(crate) const PAY: &str = "outbound|80||pay.shop";
pub(crate) const PAYMENTS: &str = "spiffe://cluster.local/ns/shop/sa/payments";
pub(crate) const GATEWAY: &str = "spiffe://cluster.local/ns/shop/sa/gateway";
pub(crate) const CLIENT: [(&str, &str); 1] = [("NAMESPACE", "shop")];
/// Flow-control window in bytes.
const WINDOW: u32 = 2 << 20;
/// A code of `google.rpc.Code`.
const INTERNAL: u64 = 13;
/// How long to wait when no response is expected.
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

/// A running discovery process with its files; it is killed on drop.
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

    /// Starts discovery with a soft and a hard limit of file descriptors, such as `100:3000`.
    pub(crate) fn start_with_descriptors(limits: &str, flags: &[&str]) -> Self {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limits}")).arg(binary());
        Self::start_by(command, &format!("limits-{}", limits.replace(':', "-")), flags)
    }

    /// Starts discovery through another program, which executes it with the arguments that follow
    /// its own.
    pub(crate) fn start_by(command: Command, name: &str, flags: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("app-health-discovery-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("mesh")).expect("a folder");
        fs::write(folder.join("mesh/shop.yaml"), MESH).expect("a file");
        let ca = Ca::new("mesh CA");
        fs::write(folder.join("ca.crt"), &ca.pem).expect("a file");
        webhook_support::write_pair(&folder, &ca.sign("discovery", &[NAME]));
        let (child, secure, monitoring) = spawn(command, &folder, flags);
        Self { child, folder, ca, secure, monitoring }
    }

    /// Starts a new process with the same files, after the first one has ended.
    pub(crate) fn start_again(&mut self, flags: &[&str]) {
        (self.child, self.secure, self.monitoring) = spawn(Command::new(binary()), &self.folder, flags);
    }

    /// Returns a TLS configuration with a client certificate for an identity.
    pub(crate) fn identity(&self, uri: &str) -> Arc<ClientConfig> {
        self.trusting(Some(&self.ca.sign_uri(uri, None)))
    }

    pub(crate) fn trusting(&self, own: Option<&(String, String)>) -> Arc<ClientConfig> {
        webhook_support::client(&self.ca.pem, own)
    }

    /// Returns a page of the monitoring port.
    pub(crate) fn page(&self, path: &str) -> String {
        page(self.monitoring, path).expect("an answer").1
    }

    /// Returns resident memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Returns the soft and the hard limit of open files.
    pub(crate) fn descriptors(&self) -> Vec<String> {
        let limits =
            fs::read_to_string(format!("/proc/{}/limits", self.child.id())).expect("the process runs");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a line");
        line.split_whitespace().take(2).map(str::to_owned).collect()
    }

    /// Returns the address of the plaintext listener, if the flags enable it.
    pub(crate) fn plaintext(&self) -> SocketAddr {
        address(&self.folder, "in plaintext")
    }

    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal, for example `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
    }

    /// Waits for the process and returns its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("the process ends").code()
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

/// Returns the flags that name the files in a folder.
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
        // As in the shipped Deployment: freed memory is returned to the system.
        .envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")])
        // The machines of the tests register addresses that this machine does not have.
        .env("APP_HEALTH_PEER_ADDRESS_CHECK", "warn")
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("log")).expect("a log"))
        .spawn()
        .expect("the binary starts");
    (child, address(folder, "over mutual TLS"), address(folder, "for monitoring"))
}

/// Returns the address in a line of the log.
fn address(folder: &Path, what: &str) -> SocketAddr {
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    let mut found = None;
    wait::until_blocking(
        || format!("no address {what}: {}", log()),
        || {
            let log = log();
            let line = log.lines().find(|line| line.contains(what) && line.ends_with(char::is_numeric));
            found = line.and_then(|line| line.rsplit_once("address=")?.1.parse().ok());
            found.is_some()
        },
    );
    found.expect("the wait ended")
}

/// Repeats a request to the monitoring port until the response is as wanted.
pub(crate) fn wait_for_page(folder: &Path, path: &str, wanted: impl Fn(u16, &str) -> bool) {
    let look = || page(address(folder, "for monitoring"), path);
    wait::until_blocking(
        || format!("{path}: {:?}", look()),
        || look().is_ok_and(|(status, text)| wanted(status, &text)),
    );
}

/// An ADS stream.
pub(crate) struct Peer(AdsClient);

impl Peer {
    pub(crate) async fn open(
        address: SocketAddr,
        tls: Arc<ClientConfig>,
        first: Request,
    ) -> Result<Self, Status> {
        Self::open_from([127, 0, 0, 1], address, tls, Variant::Sotw, first).await
    }

    /// Like [`Peer::open`], from another local address.
    pub(crate) async fn open_from(
        source: [u8; 4],
        address: SocketAddr,
        tls: Arc<ClientConfig>,
        variant: Variant,
        first: Request,
    ) -> Result<Self, Status> {
        let connect = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((source, 0).into())?;
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from(NAME).expect("a name");
            TlsConnector::from(tls).connect(name, stream).await
        };
        let stream = connect.await.map_err(|error: std::io::Error| Status::unavailable(error.to_string()))?;
        Ok(Self(AdsClient::open(stream, variant, WINDOW, &first).await?))
    }

    pub(crate) async fn send(&self, request: Request) {
        self.try_send(request).await.expect("the stream is open");
    }

    /// Sends a request unless the stream has ended.
    pub(crate) async fn try_send(&self, request: Request) -> Result<(), Status> {
        self.0.send(&request).await
    }

    /// Sends a message without its last byte.
    pub(crate) async fn send_incomplete(&self, message: Bytes) {
        self.0.send_incomplete(message).await.expect("the stream is open");
    }

    /// Returns the next response, or the status that ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Response, Status> {
        timeout(wait::timeout(), self.0.next()).await.expect("an answer in time")
    }

    /// Returns whether nothing is received for a while.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        timeout(SHORT, self.0.next()).await.is_err()
    }

    /// Reads and acknowledges assignments until one is as wanted; returns its bytes.
    pub(crate) async fn assignment(&mut self, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        loop {
            let answer = self.next().await.expect("the stream is open");
            let bytes = answer.resources[0].any.to_vec();
            let mut acknowledged = acknowledgement(&answer);
            if self.0.variant == Variant::Delta {
                // Names would be requested again.
                acknowledged.subscription = Bytes::new();
            }
            self.send(acknowledged).await;
            if wanted(&bytes) {
                return bytes;
            }
        }
    }
}

pub(crate) fn acknowledgement(answer: &Response) -> Request {
    let names: &[&str] = if answer.type_url == EDS { &[PAY] } else { &[] };
    ads_client::acknowledgement(answer, names)
}

pub(crate) fn request(type_url: &str, names: &[&str], metadata: &[(&str, &str)]) -> Request {
    let node =
        (!metadata.is_empty()).then(|| node("sidecar~10.0.0.7~vm-7.shop~shop.svc.cluster.local", metadata));
    Request { node, ..ads_client::request(type_url, names) }
}

/// Returns an encoded node.
pub(crate) fn node(id: &str, metadata: &[(&str, &str)]) -> Bytes {
    let metadata = metadata.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    Node { id: id.to_owned(), metadata, ..Node::default() }.encode_identity()
}

/// Returns a report as Istio's agent sends it; an empty text means healthy.
pub(crate) fn health(text: &str) -> Request {
    let error = (!text.is_empty()).then(|| Request::status(INTERNAL, text));
    Request { error, ..request(HEALTH, &[], &[]) }
}

/// Node metadata of a machine of the group.
pub(crate) const MACHINE: [(&str, &str); 4] = [
    ("NAMESPACE", "shop"),
    ("SERVICE_ACCOUNT", "payments"),
    ("INSTANCE_IPS", "10.0.0.7"),
    ("AUTO_REGISTER_GROUP", "payments"),
];

/// Returns whether an assignment contains the address of the machine.
pub(crate) fn has_machine(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|part| part == b"10.0.0.7")
}

/// Opens a client that subscribes to the assignment.
pub(crate) async fn client(discovery: &Discovery) -> Peer {
    let first = request(EDS, &[PAY], &CLIENT);
    Peer::open(discovery.secure, discovery.identity(GATEWAY), first).await.expect("a client")
}

/// Opens a stream like Istio's agent, with the first request of its Envoy.
pub(crate) async fn reporter(discovery: &Discovery) -> Peer {
    let first = request(LISTENER, &[], &MACHINE);
    Peer::open(discovery.secure, discovery.identity(PAYMENTS), first).await.expect("a reporter")
}
