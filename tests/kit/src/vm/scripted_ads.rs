//! A scripted ADS server, over plaintext or mutual TLS. It supports either Istio's protocol alone
//! or the extended protocol of this project's discovery server, and every misbehavior is data. It
//! records all messages that it receives.
//!
//! The rules of istiod are taken from its source (`pkg/xds/server.go`, `pilot/pkg/xds/ads.go`,
//! `pilot/pkg/bootstrap/server.go`): a report before the first other request of a stream is
//! dropped, a first request without a node ID ends the stream, a report is never acknowledged,
//! response headers are sent with the first response and no earlier, and PINGs less than 15 s apart
//! are rejected.

mod ads;
mod authority;
mod frames;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tonic::Code;
use xds::type_url::HEALTH_INFORMATION;
use xds::{Node, Request, Variant, fields};

use super::ads_server::{HttpRequest, Listener};
pub use crate::authority::{Authority, Issued};
use crate::wait;
use frames::Watched;

/// Time between GOAWAY and the end of the connection; istiod waits 10 s.
const GOAWAY_GRACE: Duration = Duration::from_secs(1);

/// Behavior of a server; a change applies to new streams unless stated otherwise.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// `{"session": 1, "heartbeatSeconds": 60, "probe": {…}}`; absent: Istio's protocol alone. Sent
    /// again when it changes.
    pub hello: Option<Value>,
    /// Whether reports are acknowledged.
    pub acknowledges: bool,
    /// Every stream is ended with this code after this time.
    pub ends: Option<(Duration, Code)>,
    /// The number of reports, over all streams, to drop like an istiod with a stale cache.
    pub forgets: usize,
}

impl Script {
    /// Returns the script of an istiod.
    pub fn plain() -> Self {
        Self::default()
    }

    /// Returns the script of this project's discovery server with this hello.
    pub fn ours(hello: Value) -> Self {
        Self { hello: Some(hello), acknowledges: true, ..Self::default() }
    }
}

/// A message of a client.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The number of the stream, from 0.
    pub stream: usize,
    /// When the message was received.
    pub at: Instant,
    /// The variant of the protocol.
    pub variant: Variant,
    pub request: Request,
    pub node: Option<Node>,
    /// The metadata of the node; `null` if absent.
    pub metadata: Value,
}

impl Seen {
    /// Returns whether this is a health report.
    pub fn is_report(&self) -> bool {
        self.request.type_url == HEALTH_INFORMATION
    }

    /// Returns the code of the request's error.
    pub fn error_code(&self) -> Option<u64> {
        let mut fields = fields(self.request.error.as_ref()?).map_while(Result::ok);
        fields.find(|field| field.number == 1)?.integer().ok()
    }

    /// Returns whether this is a report of the extended protocol.
    pub fn is_ours(&self) -> bool {
        self.is_report() && !self.metadata["APP_HEALTH_REPORT"].is_null()
    }
}

/// State shared by all connections.
#[derive(Debug, Default)]
struct Shared {
    script: Mutex<Script>,
    changed: Notify,
    seen: Mutex<Vec<Seen>>,
    health: Mutex<Option<Result<(), String>>>,
    streams: Mutex<usize>,
    connections: Mutex<usize>,
    pings: Mutex<Vec<Instant>>,
    authorizations: Mutex<Vec<String>>,
    goes_away: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the mutex is not poisoned")
}

/// A server; dropping it closes all its connections.
pub struct ScriptedAds {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Arc<Mutex<Option<TlsAcceptor>>>,
    _listener: Listener,
}

impl ScriptedAds {
    /// Starts a server over plaintext.
    pub async fn start(script: Script) -> Self {
        Self::listen("127.0.0.1:0".parse().expect("an address"), script, None).await
    }

    /// Starts a server over mutual TLS.
    pub async fn start_tls(script: Script, acceptor: TlsAcceptor) -> Self {
        Self::listen("127.0.0.1:0".parse().expect("an address"), script, Some(acceptor)).await
    }

    /// Starts a server at this address.
    ///
    /// # Panics
    /// If it is in use.
    pub async fn listen(address: SocketAddr, script: Script, acceptor: Option<TlsAcceptor>) -> Self {
        let shared = Arc::new(Shared { script: Mutex::new(script), ..Shared::default() });
        let acceptor = Arc::new(Mutex::new(acceptor));
        let (state, tls) = (shared.clone(), acceptor.clone());
        let listener = Listener::bind(address, move |stream| {
            let (state, acceptor) = (state.clone(), lock(&tls).clone());
            async move {
                *lock(&state.connections) += 1;
                serve(stream, acceptor, &state).await;
                *lock(&state.connections) -= 1;
            }
        });
        let listener = listener.await.expect("the address is free");
        Self { address: listener.address, shared, acceptor, _listener: listener }
    }

    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut lock(&self.shared.script));
        self.shared.changed.notify_waiters();
    }

    /// Uses another acceptor for new connections.
    pub fn change_tls(&self, acceptor: TlsAcceptor) {
        *lock(&self.acceptor) = Some(acceptor);
    }

    /// Sends GOAWAY on every connection, and closes it after `GOAWAY_GRACE`.
    pub fn go_away(&self) {
        self.shared.goes_away.notify_waiters();
    }

    /// Returns all messages so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }

    /// Returns the last health that an istiod would have recorded; `Err` contains the reason.
    pub fn health(&self) -> Option<Result<(), String>> {
        lock(&self.shared.health).clone()
    }

    /// Returns the number of streams so far.
    pub fn streams(&self) -> usize {
        *lock(&self.shared.streams)
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        *lock(&self.shared.connections)
    }

    /// Returns the times at which PINGs were received.
    pub fn pings(&self) -> Vec<Instant> {
        lock(&self.shared.pings).clone()
    }

    /// Returns the header `authorization` of each stream that has one.
    pub fn authorizations(&self) -> Vec<String> {
        lock(&self.shared.authorizations).clone()
    }

    /// Waits until `is_so` is true for the received messages.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub async fn until(&self, what: &str, is_so: impl Fn(&[Seen]) -> bool) {
        let waiting = async {
            while !is_so(&self.seen()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(wait::timeout(), waiting).await;
        assert!(waited.is_ok(), "timed out waiting for {what}: {:#?}", self.seen());
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
    let service = service_fn(move |request: HttpRequest| {
        if let Some(text) = request.headers().get("authorization").and_then(|value| value.to_str().ok()) {
            lock(&shared.authorizations).push(text.to_owned());
        }
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(ads::open(request, shared).await) }
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

/// Starts a listener that accepts and reads but never writes; returns its address and the number of
/// its connections.
///
/// # Panics
/// If no port can be bound.
pub async fn mute() -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("cannot bind a free port");
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
