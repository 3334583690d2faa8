//! HTTP/1.1 servers, with or without TLS, that limit everything a client controls.

mod activity;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use activity::{Activity, Watched};

/// Maximum size of a request's header section in bytes; a larger one is answered with 431.
const HEAD_LIMIT: usize = 16 << 10;
/// Maximum number of header fields; more are answered with 431.
const FIELD_LIMIT: usize = 64;
/// Timeout from the start of a connection to its first complete header section, and from the first
/// to the last byte of a later one.
const HEAD: Duration = Duration::from_secs(5);
/// Timeout of an idle connection. It is longer than the clients' own (Go: 90 s), so that clients
/// close first: a request that arrives on a closing connection would be lost.
const IDLE: Duration = Duration::from_secs(120);
/// How often these timeouts are checked.
const LOOK: Duration = Duration::from_millis(250);
/// Length of the listen queue: agents that reconnect at the same time wait there and not in our
/// memory.
const BACKLOG: i32 = 4096;
/// Pause after a failed `accept`, which means that file descriptors or memory are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long requests in flight may take when the server shuts down.
const CLOSE: Duration = Duration::from_secs(10);

/// A response with its body in memory.
pub type Response = hyper::Response<Full<Bytes>>;

/// Address of the client; an extension of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Stages of a shutdown.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Connections are closed after the current request.
    pub leaving: CancellationToken,
    /// No more connections are accepted.
    pub closing: CancellationToken,
}

/// Binds a listener. `[::]` accepts IPv4 too, and falls back to IPv4 on a machine without IPv6.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let bind = |address: SocketAddr| {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    match bind(address) {
        Err(_) if address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) => {
            bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()))
        }
        bound => bound,
    }
}

/// Serves until `ending.closing` is cancelled, then completes requests in flight. The TLS
/// configuration is loaded for each connection; without one, connections are plaintext.
pub async fn serve<H, F>(
    listener: TcpListener,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
    connections: usize,
    ending: Ending,
    handler: H,
) where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(connections));
    let tracker = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.closing.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "accepting a connection failed");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            debug!("connection limit reached, new connection closed");
            continue;
        };
        let acceptor = tls.as_ref().map(|tls| TlsAcceptor::from(tls.load_full()));
        let (ending, handler) = (ending.clone(), handler.clone());
        tracker.spawn(async move {
            greet(stream, Peer(peer), acceptor, ending, handler).await;
            drop(place);
        });
    }
    drop(listener);
    tracker.close();
    // Connections that are still open end with the process.
    let _ = timeout(CLOSE, tracker.wait()).await;
}

async fn greet<H, F>(stream: TcpStream, peer: Peer, acceptor: Option<TlsAcceptor>, ending: Ending, handler: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    // A response is one small write, which must not wait for the acknowledgement of the previous
    // one.
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => connection(stream, peer, ending, handler).await,
        Some(acceptor) => match timeout(HEAD, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => connection(stream, peer, ending, handler).await,
            Ok(Err(error)) => debug!(%error, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake timed out"),
        },
    }
}

async fn connection<S, H, F>(stream: S, peer: Peer, ending: Ending, handler: H)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let activity = Activity::new();
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let (activity, leaving) = (activity.clone(), ending.leaving.clone());
        activity.request();
        let answer = handler(request);
        async move {
            let mut response = answer.await;
            if leaving.is_cancelled() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            activity.answered();
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(FIELD_LIMIT)
        .max_buf_size(HEAD_LIMIT)
        .serve_connection(TokioIo::new(Watched::new(stream, activity.clone())), service);
    tokio::pin!(connection);
    let mut closing = false;
    loop {
        tokio::select! {
            _ = &mut connection => return,
            () = ending.closing.cancelled(), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = sleep(LOOK) => if activity.is_stale(HEAD, IDLE) { return },
        }
    }
}

/// Returns a plain-text response of one line.
pub fn text(status: StatusCode, line: &str) -> Response {
    response(status, "text/plain; charset=utf-8", Bytes::from(format!("{line}\n")))
}

/// Returns 405 for a path that only allows the method `allow`.
pub fn not_allowed(allow: &'static str) -> Response {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// Returns a response with a body.
pub fn response(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
