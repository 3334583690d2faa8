//! A scripted discovery server, over plaintext or mutual TLS: one that knows Istio's protocol alone, or one that says hello as ours
//! does, with every misbehaviour as data. What it was told is kept, message by message.
//!
//! The rules of istiod are facts of its source (`pkg/xds/server.go`, `pilot/pkg/xds/ads.go`, `pilot/pkg/bootstrap/server.go`): a report
//! before the first other request of a stream is dropped, a first request without a node's id ends the stream, a report is never
//! answered, response headers come with the first response and no earlier, and PINGs less than 15 s apart are refused.

mod ads;
mod authority;
mod frames;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::AggregatedDiscoveryServiceServer;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tonic::Code;
use tonic::codegen::Service as _;

pub use crate::authority::{Authority, Issued};
pub use ads::Variant;
use frames::Watched;

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(45);
/// Time between GOAWAY and the end of the connection; istiod waits 10 s.
const GOAWAY_GRACE: Duration = Duration::from_secs(1);
/// A report.
pub const HEALTH_INFORMATION: &str = "type.googleapis.com/istio.v1.HealthInformation";
/// The hello.
pub const PROBE_TYPE: &str = "type.googleapis.com/app_health.v1.Probe";
/// What a first request asks for.
pub const CLUSTER_LOAD_ASSIGNMENT: &str =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// How a server behaves, on each stream from its beginning unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// `{"session": 1, "heartbeatSeconds": 60, "probe": {…}}`; absent: a plain server. Sent again when it changes.
    pub hello: Option<Value>,
    /// Reports are acknowledged.
    pub acknowledges: bool,
    /// Each stream is ended so after this time.
    pub ends: Option<(Duration, Code)>,
    /// So many reports of all streams together are forgotten, as by an istiod whose cache is stale.
    pub forgets: usize,
}

impl Script {
    /// An istiod.
    pub fn plain() -> Self {
        Self::default()
    }

    /// Ours, with this hello.
    pub fn ours(hello: Value) -> Self {
        Self { hello: Some(hello), acknowledges: true, ..Self::default() }
    }
}

/// One message of a client.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of the stream, from 0.
    pub stream: usize,
    /// When it came.
    pub at: Instant,
    /// How the stream speaks.
    pub variant: Variant,
    /// Its type.
    pub type_url: String,
    /// `version_info`; empty in the incremental variant.
    pub version: String,
    /// `response_nonce`.
    pub nonce: String,
    /// Resource names, subscriptions and their ends.
    pub names: usize,
    /// `error_detail`
    pub error: Option<(i32, String)>,
    /// `node`: id, user agent, locality, metadata as JSON.
    pub node: Option<(String, String, [String; 3], Value)>,
}

impl Seen {
    /// A field of the node's metadata; `null` if absent.
    pub fn metadata(&self, name: &str) -> Value {
        self.node.as_ref().map_or(Value::Null, |(_, _, _, metadata)| metadata[name].clone())
    }

    /// Is it a report?
    pub fn is_report(&self) -> bool {
        self.type_url == HEALTH_INFORMATION
    }

    /// Is it a report in our words?
    pub fn is_ours(&self) -> bool {
        self.is_report() && !self.metadata("APP_HEALTH_REPORT").is_null()
    }
}

/// What is shared by all connections.
#[derive(Debug, Default)]
struct Shared {
    script: Mutex<Script>,
    changed: Notify,
    seen: Mutex<Vec<Seen>>,
    health: Mutex<Option<Result<(), String>>>,
    streams: Mutex<usize>,
    connections: Mutex<usize>,
    pings: Mutex<Vec<Instant>>,
    goes_away: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panicked")
}

/// A server; dropped, it is gone with all its connections.
pub struct PlainServer {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Arc<Mutex<Option<TlsAcceptor>>>,
    task: AbortHandle,
}

impl Drop for PlainServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PlainServer {
    /// Over plaintext.
    pub async fn start(script: Script) -> Self {
        Self::listen("127.0.0.1:0".parse().expect("an address"), script, None).await
    }

    /// Over mutual TLS.
    pub async fn start_tls(script: Script, acceptor: TlsAcceptor) -> Self {
        Self::listen("127.0.0.1:0".parse().expect("an address"), script, Some(acceptor)).await
    }

    /// At this address.
    ///
    /// # Panics
    /// When it is taken.
    pub async fn listen(address: SocketAddr, script: Script, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared { script: Mutex::new(script), ..Shared::default() });
        let acceptor = Arc::new(Mutex::new(acceptor));
        let task = tokio::spawn(accept(listener, shared.clone(), acceptor.clone()));
        Self { address, shared, acceptor, task: task.abort_handle() }
    }

    /// Changes how it behaves.
    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut lock(&self.shared.script));
        self.shared.changed.notify_waiters();
    }

    /// New connections are shaken hands with so.
    pub fn change_tls(&self, acceptor: TlsAcceptor) {
        *lock(&self.acceptor) = Some(acceptor);
    }

    /// Sends GOAWAY on every connection, and closes it after [`GOAWAY_GRACE`].
    pub fn go_away(&self) {
        self.shared.goes_away.notify_waiters();
    }

    /// Everything that was said so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }

    /// The health that an istiod has noted: `Err` is why not.
    pub fn health(&self) -> Option<Result<(), String>> {
        lock(&self.shared.health).clone()
    }

    /// Streams so far.
    pub fn streams(&self) -> usize {
        *lock(&self.shared.streams)
    }

    /// Connections of this moment.
    pub fn connections(&self) -> usize {
        *lock(&self.shared.connections)
    }

    /// When PINGs came.
    pub fn pings(&self) -> Vec<Instant> {
        lock(&self.shared.pings).clone()
    }

    /// Waits until `is_so` of everything that was said.
    ///
    /// # Panics
    /// When it never is.
    pub async fn until(&self, what: &str, is_so: impl Fn(&[Seen]) -> bool) {
        let waiting = async {
            while !is_so(&self.seen()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "{what} never came: {:#?}", self.seen());
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, acceptor: Arc<Mutex<Option<TlsAcceptor>>>) {
    // With the listener the connections go.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (shared, acceptor) = (shared.clone(), lock(&acceptor).clone());
        connections.spawn(async move {
            *lock(&shared.connections) += 1;
            serve(stream, acceptor, &shared).await;
            *lock(&shared.connections) -= 1;
        });
    }
}

async fn serve(stream: TcpStream, acceptor: Option<TlsAcceptor>, shared: &Arc<Shared>) {
    match acceptor {
        None => speak(stream, shared).await,
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                speak(stream, shared).await;
            }
        }
    }
}

async fn speak<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: T, shared: &Arc<Shared>) {
    let service = AggregatedDiscoveryServiceServer::new(ads::Ads(shared.clone()));
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut service = service.clone();
        async move { service.call(request).await }
    });
    let stream = TokioIo::new(Watched::new(stream, shared.clone()));
    let connection = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = shared.goes_away.notified() => connection.as_mut().graceful_shutdown(),
    }
    let _ = timeout(GOAWAY_GRACE, connection).await;
}

/// A listener that accepts, reads, and never says a word; its address, and how many connections it has had.
///
/// # Panics
/// When there is no free port.
pub async fn mute() -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    let accepted = Arc::new(Mutex::new(0));
    let counted = accepted.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            *lock(&counted) += 1;
            tokio::spawn(async move { tokio::io::copy(&mut stream, &mut tokio::io::sink()).await });
        }
    });
    (address, accepted)
}
