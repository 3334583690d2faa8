//! One HTTP/2 connection to a discovery server: looked up, dialled and shaken hands with anew for each attempt, with a limit for each.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::http::uri::{Scheme, Uri};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::client::GrpcService;

use super::goaway::Watched;
use crate::config::DiscoveryServer;
use crate::http_client::{Found, look_up};

/// Looking up, dialling, and the handshake may take so long each.
const LIMIT: Duration = Duration::from_secs(5);
/// A PING so often: with the time for its answer a dead peer is found within 30 s. istiod refuses more than one in 15 s.
const PING: Duration = Duration::from_secs(20);
/// For its answer.
const PONG: Duration = Duration::from_secs(10);
/// What the server may send before we have read it, in bytes; twice the largest probe.
const WINDOW: u32 = 128 * 1024;

/// A server, and what its handshake needs.
#[derive(Debug, Clone)]
pub struct Target {
    /// Whom to dial.
    pub server: DiscoveryServer,
    /// Absent: plaintext.
    pub tls: Option<Arc<ClientConfig>>,
}

/// A connection that carries one stream.
#[derive(Debug)]
pub struct Connection {
    /// The other end.
    pub peer: SocketAddr,
    /// Scheme and authority of requests.
    pub origin: Uri,
    /// Told once the server is about to close.
    pub goes_away: Arc<Notify>,
    /// What sends on it.
    pub requests: Requests,
    /// Reads and writes it; dropped, it is closed.
    pub driver: AbortOnDropHandle<()>,
}

/// What a gRPC client sends its requests by.
#[derive(Debug, Clone)]
pub struct Requests(http2::SendRequest<Body>);

impl GrpcService<Body> for Requests {
    type ResponseBody = Incoming;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Tries the addresses of all servers, in random order, until one shakes hands. `random` gives numbers in 0..1. `Err`: why the last one did not.
pub async fn connect(targets: &[Target], mut random: impl FnMut() -> f64) -> Result<Connection, String> {
    let mut why = String::from("no address");
    let mut found = Vec::new();
    for Target { server, tls } in targets {
        match timeout(LIMIT, look_up(&server.endpoint)).await {
            Ok(Ok(Found::Addresses(addresses))) => {
                found.extend(addresses.into_iter().map(|address| (address, server, tls)));
            }
            Ok(Ok(Found::Unix(_))) => {}
            Ok(Err(error)) => why = format!("{}: {error}", server.authority),
            Err(_) => why = format!("{}: not looked up within 5 s", server.authority),
        }
    }
    shuffle(&mut found, &mut random);
    for (address, server, tls) in found {
        match dial(address, server, tls.as_ref()).await {
            Ok(connection) => return Ok(connection),
            Err(error) => why = format!("{} ({address}): {error}", server.authority),
        }
    }
    Err(why)
}

fn shuffle<T>(values: &mut [T], random: &mut impl FnMut() -> f64) {
    for last in (1..values.len()).rev() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a few addresses"
        )]
        let other = ((last + 1) as f64 * random()) as usize;
        values.swap(last, other.min(last));
    }
}

async fn dial(
    address: SocketAddr,
    server: &DiscoveryServer,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Connection, String> {
    let connected = timeout(LIMIT, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| "no connection within 5 s")?.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let Some(tls) = tls else { return handshake(stream, address, server, Scheme::HTTP).await };
    let shaken =
        timeout(LIMIT, TlsConnector::from(tls.clone()).connect(server.san.server_name(), stream)).await;
    let stream = shaken
        .map_err(|_| "no TLS handshake within 5 s")?
        .map_err(|error: io::Error| format!("TLS handshake: {error}"))?;
    handshake(stream, address, server, Scheme::HTTPS).await
}

/// Makes a connection of a stream that stands. `server`: what requests name.
pub async fn handshake<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: T,
    peer: SocketAddr,
    server: &DiscoveryServer,
    scheme: Scheme,
) -> Result<Connection, String> {
    let (stream, goes_away) = Watched::new(stream);
    let shaken = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(stream));
    let (requests, driver) = timeout(LIMIT, shaken)
        .await
        .map_err(|_| "no HTTP/2 handshake within 5 s")?
        .map_err(|error| format!("HTTP/2 handshake: {error}"))?;
    let origin = Uri::builder()
        .scheme(scheme)
        .authority(server.authority.as_str())
        .path_and_query("/")
        .build()
        .expect("an authority that was checked");
    let driver = tokio::spawn(async move {
        // Its error is that of its stream too.
        let _ = driver.await;
    });
    Ok(Connection {
        peer,
        origin,
        goes_away,
        requests: Requests(requests),
        driver: AbortOnDropHandle::new(driver),
    })
}
