//! HTTP/1.1 server that limits every resource that a client controls.

mod activity;
mod body;
mod connection;
mod connections;
mod listener;
mod metrics;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode, Uri};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::log_limiter::LogLimiter;
use crate::shared_pool::Slot;
pub use body::{Body, Chunks};
use connections::Connections;
pub use listener::{Listener, Peer, bind, bind_unix};
pub use metrics::{GaugeGuard, ServerMetrics};
#[cfg(feature = "tls")]
pub use transport::Tls;
pub use transport::{Plaintext, Transport};

/// Pause after a failed accept, when file descriptors or memory are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub type Response = hyper::Response<Body>;

/// Response extension: time for the client to read the response, instead of [`Limits::response`].
#[derive(Debug, Clone, Copy)]
pub struct ResponseTimeout(pub Duration);

/// Limits on what clients may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of connections. A further connection replaces one of the source with the most:
    /// the one that has been idle, or has sent an incomplete request, for the longest time. If that
    /// source has at least two more than the new connection's, even one that is in use is replaced.
    pub connections: usize,
    /// Maximum number of connections of one [`Source`](crate::source::Source), if others do not need
    /// them. A further connection replaces an idle one of the same source.
    pub source_connections: usize,
    /// Those of `connections` that only trusted clients get, who use the others when these are in use.
    pub trusted_connections: usize,
    /// New connections of one source; further ones are closed.
    pub source_rate: Option<Rate>,
    /// Slots that are used while all other connections process requests.
    pub reserved: Reserved,
    /// Maximum size of a request head in bytes; a larger one is answered with 431.
    pub head_bytes: usize,
    /// Time for the TLS handshake, and for the first request head from then on; time from the first
    /// to the last byte of each later one.
    pub head: Duration,
    /// Time from the response to its last byte, and to the next request if the connection is kept.
    pub response: Duration,
    /// True if connections are kept after a response.
    pub keep_alive: bool,
    /// True if requests may have a body.
    pub bodies: bool,
    /// Time for requests in flight to finish when the server shuts down.
    pub shutdown: Duration,
}

/// A token bucket, to which tokens are added at this rate.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// At least 1.
    pub per_second: u32,
    pub burst: u32,
}

/// Slots for requests that must be answered while all other slots are busy.
#[derive(Debug, Clone, Copy)]
pub struct Reserved {
    pub connections: usize,
    /// Requests for other paths are answered with 503.
    pub paths: &'static [&'static str],
}

impl Limits {
    /// One request without a body for each connection.
    pub const ONE_REQUEST: Self = Self {
        connections: 64,
        source_connections: usize::MAX,
        trusted_connections: 0,
        source_rate: None,
        reserved: Reserved { connections: 0, paths: &[] },
        head_bytes: 8 << 10,
        head: Duration::from_secs(5),
        response: Duration::from_secs(5),
        keep_alive: false,
        bodies: false,
        shutdown: Duration::from_secs(1),
    };

    /// Any number of requests with bodies on a connection, which the handler limits. Idle
    /// connections are kept longer than clients do (Go: 90 s), so that clients close first: a
    /// request that arrives on a closing connection would be lost.
    pub const KEEP_ALIVE: Self = Self {
        head_bytes: 16 << 10,
        response: Duration::from_secs(120),
        keep_alive: true,
        bodies: true,
        shutdown: Duration::from_secs(10),
        ..Self::ONE_REQUEST
    };
}

/// A request and its connection.
pub struct HttpRequest {
    /// Peer of the connection; no header affects it.
    pub peer: Peer,
    /// Slot of this connection in the limits; the connection is reset when it is evicted.
    pub slot: Arc<Slot>,
    /// True if address or certificate of the client are trusted.
    pub is_trusted: bool,
    pub method: Method,
    /// In origin form: path and query as received.
    pub uri: Uri,
    pub headers: HeaderMap,
    /// Empty unless [`Limits::bodies`] allows one.
    pub body: Incoming,
}

impl HttpRequest {
    /// Returns the bytes before `?`.
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// Returns the bytes after `?`.
    pub fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    /// True for GET and HEAD.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }
}

/// Name, limits and metrics of a server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Name in metrics, such as `ready`.
    pub name: &'static str,
    /// Paths that metrics name; all other paths count as `other`.
    pub paths: &'static [&'static str],
    pub limits: Limits,
    pub metrics: ServerMetrics,
}

/// Stages of a shutdown.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    /// Connections are closed after the current request.
    pub leaving: CancellationToken,
    /// No more connections are accepted.
    pub closing: CancellationToken,
}

/// Serves until `stages.closing` is cancelled, then waits for requests in flight. `handler` answers
/// every request in origin form.
pub async fn serve<T, H, F>(
    listener: impl Into<Listener>,
    transport: T,
    server: Server,
    stages: Stages,
    handler: H,
) where
    T: Transport,
    H: Fn(HttpRequest) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let listener = listener.into();
    let mut connections = Connections::new(server.limits);
    let tracker = TaskTracker::new();
    let mut failures = LogLimiter::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stages.closing.cancelled() => break,
        };
        match accepted {
            Ok((_, peer)) if !transport.admits_peer(peer) => {
                server.metrics.connection_closed(server.name, "forbidden");
            }
            Ok((stream, peer)) => match connections.admit_peer(peer, transport.is_trusted_peer(peer)) {
                Ok(admitted) => {
                    let (transport, handler) = (transport.clone(), handler.clone());
                    let (server, stages) = (server.clone(), stages.clone());
                    tracker
                        .spawn(connection::serve(stream, peer, admitted, transport, server, stages, handler));
                    // The task reads what its socket has received before the next connection is
                    // accepted and may evict it: a request head that has already arrived must not
                    // be discarded.
                    yield_now().await;
                }
                Err(refused) => {
                    debug!(reason = refused.word(), "connection closed: connection limit reached");
                    server.metrics.connection_closed(server.name, refused.word());
                }
            },
            Err(error) => {
                if let Some(times) = failures.record(Instant::now()) {
                    warn!(%error, times, "accept failed");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tracker.close();
    // Connections that are still open are closed when the process exits.
    let _ = timeout(server.limits.shutdown, tracker.wait()).await;
}

pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    response(status, "text/plain; charset=utf-8", body.into())
}

pub fn json(status: StatusCode, body: Bytes) -> Response {
    response(status, "application/json", body)
}

/// Builds the 404 response for a path that this port does not serve.
pub fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "not found\n")
}

/// Builds the 405 response for a path that this port serves; `allow` is a list such as `GET, HEAD`.
pub fn not_allowed(allow: &'static str) -> Response {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

pub fn response(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests;
