//! One connection: its handshake, its requests, and the reasons to close it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::Request;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::activity::{Activity, State, Tracked};
use super::connections::Admitted;
use super::listener::Stream;
use super::{HttpRequest, Limits, Peer, Response, ResponseTimeout, Server, Stages, Transport};
use super::{not_found, text};
use crate::shared_pool::Slot;

/// Maximum number of header fields; more fields are answered with 431.
const FIELD_LIMIT: usize = 64;
/// How long a connection counts as busy after a response, which the client may not have read yet.
const RESPONSE_TIME: Duration = Duration::from_secs(1);

/// Why a connection ends.
enum End {
    Finished,
    TimedOut,
    Evicted,
}

/// Serves a connection from its handshake to its end.
pub(super) async fn serve<T, H, F>(
    stream: Stream,
    peer: Peer,
    admitted: Admitted,
    transport: T,
    server: Server,
    stages: Stages,
    handler: H,
) where
    T: Transport,
    H: Fn(HttpRequest) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let _counted = server.metrics.connection(server.name);
    stream.set_nodelay();
    // Both parts are boxed: otherwise the task would reserve memory for the larger one, and for what the first
    // one returns.
    let requests = match Box::pin(accept(stream, peer, admitted, transport, &server)).await {
        Some((stream, admitted)) => {
            Box::pin(requests::<T, H, F>(stream, peer, admitted, server, stages, handler))
        }
        None => return,
    };
    requests.await;
}

/// Performs the handshake. A client with a certificate becomes a trusted one.
async fn accept<T: Transport>(
    stream: Stream,
    peer: Peer,
    mut admitted: Admitted,
    transport: T,
    Server { name, limits, metrics, .. }: &Server,
) -> Option<(T::Stream, Admitted)> {
    let accepted = tokio::select! {
        accepted = timeout(limits.head, transport.accept(stream, peer.source())) => accepted,
        () = admitted.slot.evicted() => {
            metrics.connection_closed(name, "evicted");
            return None;
        }
    };
    match accepted {
        Ok(Ok(stream)) => {
            if T::has_certificate(&stream) {
                admitted.trust(peer.source());
            }
            Some((stream, admitted))
        }
        Ok(Err(error)) => {
            debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => {
            metrics.connection_closed(name, "head_timeout");
            None
        }
    }
}

/// Returns a future that answers the requests of a connection. What it moves into the connection is not part
/// of it a second time, as it would be in an `async fn`.
fn requests<T, H, F>(
    stream: T::Stream,
    peer: Peer,
    admitted: Admitted,
    server: Server,
    stages: Stages,
    handler: H,
) -> impl Future<Output = ()> + Send
where
    T: Transport,
    H: Fn(HttpRequest) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let Server { name, paths, limits, metrics } = server;
    let Admitted { slot, is_reserved, is_trusted, .. } = admitted;
    let Stages { leaving, closing } = stages;
    let activity = Activity::new(limits.head, limits.keep_alive);
    let (client, active, counted) = (slot.clone(), activity.clone(), metrics.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        client.set_busy();
        active.request();
        let path = paths.iter().find(|path| **path == request.uri().path()).copied().unwrap_or("other");
        // Boxed: hyper reserves memory for this future even while there is no request.
        let response = Box::pin(respond(
            request,
            peer,
            client.clone(),
            is_reserved,
            is_trusted,
            limits,
            handler.clone(),
        ));
        let (active, client, counted, leaving) =
            (active.clone(), client.clone(), counted.clone(), leaving.clone());
        async move {
            let mut response = response.await;
            counted.request(name, path, response.status().as_u16());
            if limits.keep_alive && !leaving.is_cancelled() {
                client.set_idle(RESPONSE_TIME);
            } else {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            let within = response.extensions().get();
            active.responded(within.map_or(limits.response, |ResponseTimeout(within)| *within));
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(FIELD_LIMIT)
        .max_buf_size(limits.head_bytes)
        .keep_alive(limits.keep_alive)
        .serve_connection(TokioIo::new(Tracked::new(stream, activity.clone())), service);
    async move {
        let mut timer = pin!(sleep_until(Instant::now()));
        let mut is_closing = false;
        let end = loop {
            // The deadline may change whenever the connection is polled.
            let ended = poll_fn(|context| {
                if Pin::new(&mut connection).poll(context).is_ready() {
                    return Poll::Ready(End::Finished);
                }
                let Some(deadline) = activity.deadline() else { return Poll::Pending };
                if timer.deadline() != deadline {
                    timer.as_mut().reset(deadline);
                }
                timer.as_mut().poll(context).map(|()| End::TimedOut)
            });
            tokio::select! {
                end = ended => break end,
                () = slot.evicted() => break End::Evicted,
                // A connection that is not kept ends by itself.
                () = closing.cancelled(), if limits.keep_alive && !is_closing => {
                    is_closing = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        let reason = match (end, activity.state()) {
            (End::Finished, _) => return,
            (End::Evicted, _) => "evicted",
            (End::TimedOut, State::Responded(_)) if limits.keep_alive => return,
            (End::TimedOut, State::Responded(_)) => "write_timeout",
            (End::TimedOut, _) => return metrics.connection_closed(name, "head_timeout"),
        };
        metrics.connection_closed(name, reason);
        T::socket(&connection.into_parts().io.into_inner().into_inner()).reset_on_close();
    }
}

async fn respond<H, F>(
    request: Request<Incoming>,
    peer: Peer,
    slot: Arc<Slot>,
    is_reserved: bool,
    is_trusted: bool,
    limits: Limits,
    handler: H,
) -> Response
where
    H: Fn(HttpRequest) -> F,
    F: Future<Output = Response>,
{
    if is_reserved && !limits.reserved.paths.contains(&request.uri().path()) {
        return text(StatusCode::SERVICE_UNAVAILABLE, "busy\n");
    }
    if !limits.bodies && has_body(&request) {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "request body not allowed\n");
    }
    if request.uri().authority().is_some() {
        return not_found();
    }
    let (head, body) = request.into_parts();
    let Parts { method, uri, headers, .. } = head;
    handler(HttpRequest { peer, slot, is_trusted, method, uri, headers, body }).await
}

fn has_body<B>(request: &Request<B>) -> bool {
    let length = request.headers().get(CONTENT_LENGTH);
    request.headers().contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}
