//! One small HTTP/1.1 server for the agent's ports: one request per connection, limits for everything that a caller controls.

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

use crate::log::Repeated;
use crate::metrics::Metrics;
pub use body::{Body, Chunks};
pub use connections::Slot;
use connections::{Admitted, Connections};
use listener::Stream;
pub use listener::{Bound, Listener, Peer, bind, bind_local};

/// A request's head, in bytes; more is 431.
const HEAD_LIMIT: usize = 8 * 1024;
/// Its fields; more is 431.
const FIELD_LIMIT: usize = 64;
/// Pause after a failed accept: there are no descriptors, or no memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What open connections get when the server closes.
const CLOSE: Duration = Duration::from_secs(1);

/// An answer.
pub type Response = hyper::Response<Body>;

/// In the extensions of an answer: how long the caller may take to read it, instead of [`Limits::answer`].
#[derive(Debug, Clone, Copy)]
pub struct AnswerWithin(pub Duration);

/// What callers may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time. For one more, the oldest one without a complete head is reset.
    pub connections: usize,
    /// From the connection to its complete head, then it is closed.
    pub head: Duration,
    /// From the answer to its last byte, then the connection is reset.
    pub answer: Duration,
}

impl Limits {
    /// 64 connections, or what `descriptors` leaves of 40 for other things, but 8 at least; 5 s each.
    pub fn new(descriptors: u64) -> Self {
        let connections = usize::try_from(descriptors.saturating_sub(40).clamp(8, 64)).expect("at most 64");
        Self { connections, head: Duration::from_secs(5), answer: Duration::from_secs(5) }
    }
}

/// A request without a body, as a handler sees it.
pub struct Call {
    /// Whose connection it is. No header changes that.
    pub peer: Peer,
    /// Any method.
    pub method: Method,
    /// The bytes before `?`, as they were sent.
    pub path: String,
    /// The bytes after it.
    pub query: String,
    /// At most 64.
    pub headers: HeaderMap,
    /// The connection's place among those that are counted.
    pub slot: Slot,
}

/// What a server is called in metrics, and how it counts.
#[derive(Debug, Clone)]
pub struct Server {
    /// `ready`, `local`.
    pub name: &'static str,
    /// The paths that it has; others are `other`.
    pub paths: &'static [&'static str],
    /// What callers may take.
    pub limits: Limits,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// Serves until `shutdown`, then gives open connections a second. `handler` answers every request in origin form without a body.
pub async fn serve<H, F>(listener: Listener, server: Server, shutdown: CancellationToken, handler: H)
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let connections = Arc::new(Mutex::new(Connections::new(server.limits.connections)));
    let tracker = TaskTracker::new();
    let mut failures = Repeated::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => match connections::admit(&connections) {
                Some(admitted) => {
                    tracker.spawn(connection(stream, peer, server.clone(), admitted, handler.clone()));
                    // It reads what its socket holds before the next one is accepted, which may want its place: a head that
                    // is there already must not be given up.
                    yield_now().await;
                }
                None => {
                    debug!("all connections are busy, the new one is closed");
                    server.metrics.connection_closed(server.name, "full");
                }
            },
            Err(error) => {
                if let Some(times) = failures.came(Instant::now()) {
                    warn!(%error, times, "cannot accept connections");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tracker.close();
    // What is still open after it ends with the process.
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
        text(StatusCode::PAYLOAD_TOO_LARGE, "no body, please\n")
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

/// An answer for people.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    response(status, "text/plain; charset=utf-8", body.into())
}

/// An answer for programs.
pub fn json(status: StatusCode, body: Bytes) -> Response {
    response(status, "application/json", body)
}

/// 403, for a caller that is not of this machine.
pub fn forbidden() -> Response {
    text(StatusCode::FORBIDDEN, "for this machine alone\n")
}

/// 404, for a path that this port does not have.
pub fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "not found\n")
}

/// 405, for a path that this port has; `allow`: `GET, HEAD`.
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
