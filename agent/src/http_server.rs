//! Small HTTP/1.1 server for the agent's ports. It serves one request per connection and limits
//! every resource that a client controls.

mod body;
mod connections;
mod listener;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::log::LogLimiter;
use crate::metrics::Metrics;
pub use body::{Body, Chunks};
pub use connections::Slot;
use connections::{Admitted, Connections};
use listener::Stream;
pub use listener::{Bound, Listener, Peer, bind, bind_local};

/// Maximum size of a request head in bytes; a larger head is answered with 431.
const HEAD_LIMIT: usize = 8 * 1024;
/// Maximum number of header fields; more fields are answered with 431.
const FIELD_LIMIT: usize = 64;
/// Pause after a failed accept, when file descriptors or memory are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for open connections to finish when the server shuts down.
const CLOSE: Duration = Duration::from_secs(1);

pub type Response = hyper::Response<Body>;

/// Response extension: time for the client to read the response, instead of [`Limits::answer`].
#[derive(Debug, Clone, Copy)]
pub struct AnswerWithin(pub Duration);

/// Limits on what clients may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of connections. A further connection resets the oldest one whose request head
    /// is incomplete.
    pub connections: usize,
    /// Time from accept to the complete request head, after which the connection is closed.
    pub head: Duration,
    /// Time from the response to its last byte, after which the connection is reset.
    pub answer: Duration,
}

impl Limits {
    /// Allows 64 connections, or what `descriptors` leaves after 40 for other uses, but at least 8.
    /// Both timeouts are 5 s.
    pub fn new(descriptors: u64) -> Self {
        let connections = usize::try_from(descriptors.saturating_sub(40).clamp(8, 64)).expect("at most 64");
        Self { connections, head: Duration::from_secs(5), answer: Duration::from_secs(5) }
    }
}

/// Request without a body, as handlers receive it.
pub struct Call {
    /// Peer of the connection; no header affects it.
    pub peer: Peer,
    pub method: Method,
    /// Bytes before `?`, as received.
    pub path: String,
    /// Bytes after `?`.
    pub query: String,
    /// Header fields, at most 64.
    pub headers: HeaderMap,
    /// Slot of this connection in the connection limit.
    pub slot: Slot,
}

/// Name, limits and metrics of a server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Name in metrics: `ready` or `local`.
    pub name: &'static str,
    /// Paths that metrics name; all other paths count as `other`.
    pub paths: &'static [&'static str],
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
}

/// Serves until `shutdown`, then waits up to one second for open connections. `handler` answers
/// every request that is in origin form and has no body.
pub async fn serve<H, F>(listener: Listener, server: Server, shutdown: CancellationToken, handler: H)
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let connections = Arc::new(Mutex::new(Connections::new(server.limits.connections)));
    let tracker = TaskTracker::new();
    let mut failures = LogLimiter::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => match connections::admit(&connections) {
                Some(admitted) => {
                    tracker.spawn(connection(stream, peer, server.clone(), admitted, handler.clone()));
                    // The task reads what its socket has received before the next connection is
                    // accepted and may evict it: a request head that has already arrived must not
                    // be discarded.
                    yield_now().await;
                }
                None => {
                    debug!("connection closed: connection limit reached");
                    server.metrics.connection_closed(server.name, "full");
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
    let _ = timeout(CLOSE, tracker.wait()).await;
}

async fn connection<H, F>(stream: Stream, peer: Peer, server: Server, admitted: Admitted, handler: H)
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let Server { name, paths, limits, metrics } = server;
    let _counted = metrics.connection(name);
    let Admitted { slot, mut evicted } = admitted;
    let (answered, is_answered) = oneshot::channel();
    let answered = Arc::new(Mutex::new(Some(answered)));
    let service = service_fn(|request: Request<Incoming>| {
        slot.head_is_complete();
        let path = paths.iter().find(|path| **path == request.uri().path()).copied().unwrap_or("other");
        let answer = answer(request, peer, slot.clone(), handler.clone());
        let (answered, counted) = (answered.clone(), metrics.clone());
        async move {
            let response = answer.await;
            counted.request(name, path, response.status().as_u16());
            let within = response.extensions().get().map_or(limits.answer, |AnswerWithin(within)| *within);
            if let Some(answered) = answered.lock().expect("nothing panics while it holds this lock").take() {
                let _ = answered.send(within);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(FIELD_LIMIT)
        .max_buf_size(HEAD_LIMIT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let unread = async {
        match is_answered.await {
            Ok(within) => sleep(within).await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = &mut connection => {
            if ended.is_err_and(|error| error.is_timeout()) {
                metrics.connection_closed(name, "head_timeout");
            }
        }
        Ok(()) = &mut evicted => {
            metrics.connection_closed(name, "evicted");
            connection.into_parts().io.into_inner().reset();
        }
        () = unread => {
            metrics.connection_closed(name, "write_timeout");
            connection.into_parts().io.into_inner().reset();
        }
    }
}

async fn answer<H, F>(request: Request<Incoming>, peer: Peer, slot: Slot, handler: H) -> Response
where
    H: Fn(Call) -> F,
    F: Future<Output = Response>,
{
    let uri = request.uri();
    let mut response = if has_body(&request) {
        text(StatusCode::PAYLOAD_TOO_LARGE, "request body not allowed\n")
    } else if uri.authority().is_some() {
        not_found()
    } else {
        let (path, query) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
        let (head, _) = request.into_parts();
        handler(Call { peer, method: head.method, path, query, headers: head.headers, slot }).await
    };
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn has_body<B>(request: &Request<B>) -> bool {
    let length = request.headers().get(CONTENT_LENGTH);
    request.headers().contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    response(status, "text/plain; charset=utf-8", body.into())
}

pub fn json(status: StatusCode, body: Bytes) -> Response {
    response(status, "application/json", body)
}

/// Builds the 403 response for a client that is not on this host.
pub fn forbidden() -> Response {
    text(StatusCode::FORBIDDEN, "allowed from this host only\n")
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

fn response(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests;
