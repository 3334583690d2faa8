//! One connection: TLS handshake, client identity, HTTP/2, and routing of requests to ADS streams.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};
use tracing::debug;

use super::client_hello::read_client_hello;
use super::handshakes::Handshake;
use super::open_connections::OpenConnections;
use super::peer::{Peer, StreamGuard};
use super::stream_task::{self, HttpResponse};
use super::{SCARCE_HANDSHAKES, Shared};
use crate::metrics::RefusedReason;
use discovery::identity::parse_certificate;
use discovery::message::Variant;

/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Interval of HTTP/2 keep-alive pings.
const PING: Duration = Duration::from_secs(10);
/// Timeout for the acknowledgement of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the streams of a connection are counted. A connection without a stream is checked again
/// after [`UNUSED_CHECK_INTERVAL`].
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// A connection is closed if it has no stream at two checks in a row. A new one is checked at this
/// interval, so that it has two of them to open its first stream.
const UNUSED_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// HTTP/2 flow-control window in bytes, for each stream and for the connection.
const WINDOW: u32 = 64 << 10;
/// Bytes of a response that HTTP/2 buffers in addition to the peer's window.
const SEND_BUFFER: usize = 16 << 10;
/// Maximum size of a request's header list, in bytes.
const HEADERS: u32 = 8 << 10;
/// Maximum number of concurrent streams per connection. Envoy opens one, or a few while it
/// reconnects.
const STREAMS: u32 = 16;

pub(super) async fn accept(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<(Arc<ServerConfig>, Handshake)>,
    handshake_permit: OwnedSemaphorePermit,
    connections: OpenConnections,
    shared: Arc<Shared>,
    closing: CancellationToken,
) {
    // A push is one small write, which must not wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    if connections.is_full() {
        shared.connection_limit_reached();
    }
    let Ok(open) = timeout(HANDSHAKE, connections.admit(address.ip().into())).await else {
        // The client has not failed.
        if let Some((_, handshake)) = tls {
            handshake.succeeded();
        }
        return shared.metrics.refused(RefusedReason::Limit);
    };
    let Some((tls, handshake)) = tls else {
        drop(handshake_permit);
        let peer = Peer { address, certified: None };
        return connection(stream, peer, StreamGuard::new(open, None), shared, closing).await;
    };
    let is_scarce = || handshake_permit.semaphore().available_permits() < SCARCE_HANDSHAKES;
    let shaken = async { read_client_hello(stream, is_scarce).await?.into_stream(tls).await };
    let replaced = open.closing.clone();
    // Both futures are boxed: otherwise the task would reserve memory for the larger of them.
    let shaken = timeout(HANDSHAKE, Box::pin(shaken));
    match replaced.run_until_cancelled(shaken).await {
        Some(Ok(Ok(stream))) => {
            drop(handshake_permit);
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let certificate = chain.first().map_or(&[][..], |certificate| certificate.as_ref());
            let certified = Some(parse_certificate(certificate, &shared.trust_domains));
            let (peer, guard) = (Peer { address, certified }, StreamGuard::new(open, Some(handshake)));
            Box::pin(connection(stream, peer, guard, shared, closing)).await;
        }
        Some(Ok(Err(error))) => {
            shared.metrics.refused(RefusedReason::Handshake);
            debug!(%address, %error, "TLS handshake failed");
        }
        Some(Err(_)) => {
            shared.metrics.refused(RefusedReason::Handshake);
            debug!(%address, "TLS handshake timed out");
        }
        None => shared.metrics.refused(RefusedReason::Limit),
    }
}

async fn connection<S>(
    stream: S,
    peer: Peer,
    guard: StreamGuard,
    shared: Arc<Shared>,
    closing: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let peer = Arc::new(peer);
    let service = service_fn(|request: Request<Incoming>| {
        let (peer, shared) = (peer.clone(), shared.clone());
        let response = handle_request(request, &peer, &shared, &guard, &closing);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(HEADERS)
        .max_concurrent_streams(STREAMS)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut shutting_down = false;
    let mut unused = false;
    loop {
        let interval = if guard.has_streams() { CHECK_INTERVAL } else { UNUSED_CHECK_INTERVAL };
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    debug!(address = %peer.address, %error, "connection failed");
                }
                return;
            }
            () = closing.cancelled(), if !shutting_down => {
                shutting_down = true;
                connection.as_mut().graceful_shutdown();
            }
            () = guard.closed() => return,
            () = sleep(interval) => {
                let is_unused = !guard.has_streams();
                if unused && is_unused {
                    return;
                }
                unused = is_unused;
            }
        }
    }
}

fn handle_request(
    request: Request<Incoming>,
    peer: &Arc<Peer>,
    shared: &Arc<Shared>,
    guard: &StreamGuard,
    closing: &CancellationToken,
) -> HttpResponse {
    let Some(variant) = Variant::of_path(request.uri().path()) else {
        return stream_task::error_response(&Status::new(Code::Unimplemented, "unknown method"));
    };
    if request.method() != Method::POST {
        return stream_task::error_response(&Status::new(Code::Unimplemented, "HTTP method must be POST"));
    }
    if let Some(Err(error)) = &peer.certified {
        shared.metrics.refused(RefusedReason::Identity);
        return stream_task::error_response(&Status::unauthenticated(error.to_string()));
    }
    stream_task::open(request.into_body(), variant, peer.clone(), shared, guard.clone(), closing.clone())
}
