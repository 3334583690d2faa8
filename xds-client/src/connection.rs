//! One HTTP/2 connection to a discovery server. Each attempt resolves the name, connects and
//! performs the handshakes again, each with its own timeout.

mod attempt_errors;
mod first_read;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, TE, USER_AGENT};
use hyper::http::uri::{PathAndQuery, Scheme, Uri};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService;

use super::config::DiscoveryServer;
use super::token::TokenFile;
use attempt_errors::{AttemptErrors, Stage};
use first_read::{FirstRead, tls_error};
use http_client::{Resolved, resolve};

/// Timeout of each step: DNS lookup, TCP connect, TLS handshake, HTTP/2 handshake.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of HTTP/2 keepalive PINGs. A dead peer is detected within 30 s, see [`KEEPALIVE_TIMEOUT`].
/// istiod rejects clients that send more than one PING in 15 s.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// How long to wait for the PING's acknowledgement.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// HTTP/2 flow-control window in bytes, twice the size of the largest probe.
const FLOW_CONTROL_WINDOW: u32 = 128 * 1024;

/// A server and its TLS client configuration.
#[derive(Debug, Clone)]
pub struct ServerTarget {
    pub server: DiscoveryServer,
    /// `None` for plaintext.
    pub tls: Option<Arc<ClientConfig>>,
    /// The token that authenticates the agent; read at each attempt.
    pub token: Option<TokenFile>,
    /// Headers that are added to each request.
    pub headers: HeaderMap,
}

/// An HTTP/2 connection that carries one stream.
#[derive(Debug)]
pub struct Connection {
    pub peer: SocketAddr,
    /// Scheme and authority of requests.
    pub origin: Uri,
    pub requests: GrpcChannel,
    /// Task that drives the connection; dropping it closes the connection.
    pub driver: AbortOnDropHandle<()>,
}

/// Sends gRPC requests on one HTTP/2 connection.
#[derive(Debug, Clone)]
pub struct GrpcChannel {
    requests: http2::SendRequest<Body>,
    /// Headers that are added to each request.
    headers: Arc<HeaderMap>,
}

impl Connection {
    /// Returns a gRPC request to a method of the server, without its own headers.
    pub fn request(&self, path: &'static str, body: Body) -> Request<Body> {
        let mut uri = self.origin.clone().into_parts();
        uri.path_and_query = Some(PathAndQuery::from_static(path));
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.try_into().expect("scheme and authority are those of the connection");
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let agent = concat!("app-health-agent/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        request
    }
}

/// Returns the status of a response that contains no messages, because the server refuses the request or is no
/// gRPC server, as a proxy may be.
pub fn refusal<T>(response: &Response<T>) -> Option<Status> {
    let text = format!("HTTP status {}", response.status());
    match response.status() {
        StatusCode::OK => Status::from_header_map(response.headers()),
        StatusCode::UNAUTHORIZED => Some(Status::unauthenticated(text)),
        StatusCode::FORBIDDEN => Some(Status::permission_denied(text)),
        _ => Some(Status::unavailable(text)),
    }
}

impl GrpcService<Body> for GrpcChannel {
    type ResponseBody = Incoming;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.requests.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().extend(HeaderMap::clone(&self.headers));
        Box::pin(self.requests.send_request(request))
    }
}

/// Connects to the addresses of all servers in random order, until one handshake succeeds.
/// Returns the reason for each address if all fail.
pub async fn connect(targets: &[ServerTarget], mut random: fastrand::Rng) -> Result<Connection, String> {
    let mut errors = AttemptErrors::default();
    let mut found = Vec::new();
    for target @ ServerTarget { server, .. } in targets {
        match timeout(STEP_TIMEOUT, resolve(&server.endpoint)).await {
            Ok(Ok(Resolved::Addresses(addresses))) => {
                found.extend(addresses.into_iter().map(|address| (address, target)));
            }
            Ok(Ok(Resolved::Unix(_))) => {}
            Ok(Err(error)) => errors.add(Stage::Lookup, &server.authority, None, error.to_string()),
            Err(_) => {
                let error = "DNS lookup timed out after 5 s".to_owned();
                errors.add(Stage::Lookup, &server.authority, None, error);
            }
        }
    }
    random.shuffle(&mut found);
    for (address, target) in found {
        match dial(address, target).await {
            Ok(connection) => return Ok(connection),
            Err((stage, error)) => errors.add(stage, &target.server.authority, Some(address), error),
        }
    }
    Err(errors.line())
}

async fn dial(address: SocketAddr, target: &ServerTarget) -> Result<Connection, (Stage, String)> {
    let in_handshake = |error: String| (Stage::Handshake, error);
    let token = target.token.as_ref().map(TokenFile::read).transpose().map_err(in_handshake)?;
    let stream = match timeout(STEP_TIMEOUT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err((Stage::Connect, error.to_string())),
        Err(_) => return Err((Stage::Connect, "connection timed out after 5 s".to_owned())),
    };
    let secured = secure(stream, address, &target.server, target.tls.as_ref()).await;
    let mut connection = secured.map_err(in_handshake)?;
    let mut headers = target.headers.clone();
    headers.extend(token.flatten().map(|token| (AUTHORIZATION, token)));
    connection.requests.headers = headers.into();
    Ok(connection)
}

async fn secure(
    stream: TcpStream,
    address: SocketAddr,
    server: &DiscoveryServer,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Connection, String> {
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let Some(tls) = tls else { return handshake(stream, address, server, Scheme::HTTP).await };
    let shaken =
        timeout(STEP_TIMEOUT, TlsConnector::from(tls.clone()).connect(server.san.server_name(), stream))
            .await;
    let stream = shaken
        .map_err(|_| "TLS handshake timed out after 5 s")?
        .map_err(|error| format!("TLS handshake: {}", tls_error(&error)))?;
    let (stream, accepted) = FirstRead::new(stream);
    let connection = handshake(stream, address, server, Scheme::HTTPS).await;
    match timeout(STEP_TIMEOUT, accepted).await {
        Ok(Ok(Ok(()))) => connection,
        Ok(Ok(Err(error))) => Err(format!("TLS handshake: {error}")),
        Ok(Err(_)) => connection.and(Err("HTTP/2 handshake: the connection was closed".to_owned())),
        Err(_) => Err("HTTP/2 handshake timed out after 5 s".to_owned()),
    }
}

/// Performs the HTTP/2 handshake on a connected stream. `server` provides the authority of
/// requests.
pub async fn handshake<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: T,
    peer: SocketAddr,
    server: &DiscoveryServer,
    scheme: Scheme,
) -> Result<Connection, String> {
    let shaken = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(FLOW_CONTROL_WINDOW)
        .initial_connection_window_size(FLOW_CONTROL_WINDOW)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(stream));
    let (requests, driver) = timeout(STEP_TIMEOUT, shaken)
        .await
        .map_err(|_| "HTTP/2 handshake timed out after 5 s")?
        .map_err(|error| format!("HTTP/2 handshake: {error}"))?;
    let origin = Uri::builder()
        .scheme(scheme)
        .authority(server.authority.as_str())
        .path_and_query("/")
        .build()
        .expect("the authority was validated");
    let driver = tokio::spawn(async move {
        // The same error ends the stream, where it is reported.
        let _ = driver.await;
    });
    let requests = GrpcChannel { requests, headers: Arc::default() };
    Ok(Connection { peer, origin, requests, driver: AbortOnDropHandle::new(driver) })
}
