//! HTTP/1.1 client that sends one request per connection and limits how much it reads. Callers set
//! deadlines: dropping a future closes its connection.

use std::convert::Infallible;
use std::error::Error as _;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use address::Endpoint;
use address::RequestFailure;

/// Maximum size of a response head in bytes.
const HEAD_LIMIT: usize = 16 * 1024;
/// Maximum number of headers of a response; what exceeds hyper's default of 100 costs an allocation.
const HEADERS: usize = 1000;
/// Number of bytes of a body after which other tasks run; all tasks share one thread.
const BYTES_PER_TURN: usize = 64 * 1024;
/// Size of a TCP connection's receive buffer in bytes. Without a limit the kernel buffers megabytes of a
/// response that the client stops reading, and to free them takes milliseconds of the only thread.
const RECEIVE_BUFFER: u32 = 256 * 1024;

/// Connection on which no request has been sent yet.
pub struct Connection(Box<dyn Stream>);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Response whose body may be truncated.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    /// Body, at most as long as the caller's limit.
    pub body: Vec<u8>,
    /// True if the body exceeded the limit, at which reading stopped.
    pub truncated: bool,
}

#[derive(Debug, Error)]
#[error("no HTTP response: {0}")]
pub struct RequestError(#[from] hyper::Error);

impl RequestError {
    /// Returns true if the peer sent invalid HTTP or an incomplete body, and false if the
    /// connection ended before a response.
    pub fn is_protocol_error(&self) -> bool {
        let source = self.0.source().and_then(|source| source.downcast_ref::<io::Error>());
        let breaks_off = source.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        self.0.is_parse() || self.0.is_parse_too_large() || breaks_off
    }
}

impl From<RequestError> for RequestFailure {
    fn from(_: RequestError) -> Self {
        Self::BadBody
    }
}

#[derive(Debug, Error)]
pub enum ConnectError {
    /// The connection failed: it was refused, the socket does not exist, or there is no route.
    #[error("{0}")]
    Refused(io::Error),
    #[error("{0}")]
    UnknownName(io::Error),
}

/// Destination that can be connected to without a name lookup.
#[derive(Debug)]
pub enum Resolved<'a> {
    Unix(&'a Path),
    Addresses(Vec<SocketAddr>),
}

/// Resolves the host name. This is the only step that can block; it continues in a separate thread
/// when the future is dropped. `localhost` resolves to 127.0.0.1 and ::1, in this order.
pub async fn resolve(endpoint: &Endpoint) -> Result<Resolved<'_>, ConnectError> {
    Ok(match endpoint {
        Endpoint::Unix(path) => Resolved::Unix(path),
        Endpoint::Ip(address) => Resolved::Addresses(vec![*address]),
        Endpoint::Localhost(port) => {
            let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            Resolved::Addresses(loopback.map(|ip| SocketAddr::new(ip, *port)).to_vec())
        }
        Endpoint::Name(name, port) => {
            let addresses = tokio::net::lookup_host((name.as_str(), *port)).await;
            Resolved::Addresses(addresses.map_err(ConnectError::UnknownName)?.collect())
        }
    })
}

pub async fn connect(endpoint: &Endpoint) -> Result<Connection, ConnectError> {
    resolve(endpoint).await?.dial().await
}

impl Resolved<'_> {
    pub async fn dial(self) -> Result<Connection, ConnectError> {
        let stream: Box<dyn Stream> = match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(ConnectError::Refused)?),
            Self::Addresses(addresses) => {
                Box::new(connect_tcp(&addresses).await.map_err(ConnectError::Refused)?)
            }
        };
        Ok(Connection(stream))
    }
}

/// Connects to the first address that accepts.
async fn connect_tcp(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        match socket.connect(*address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Connection {
    /// Sends `GET path` with `Host: authority` and reads the response, with at most `limit` bytes
    /// of its body.
    pub async fn get(self, authority: &str, path: &str, limit: usize) -> Result<HttpResponse, RequestError> {
        self.call(Method::GET, authority, path, limit).await
    }

    /// Sends `POST path` with an empty body; otherwise like [`Self::get`].
    pub async fn post(self, authority: &str, path: &str, limit: usize) -> Result<HttpResponse, RequestError> {
        self.call(Method::POST, authority, path, limit).await
    }

    /// Sends a request with an empty body; otherwise like [`Self::get`].
    pub async fn call(
        self,
        method: Method,
        authority: &str,
        path: &str,
        limit: usize,
    ) -> Result<HttpResponse, RequestError> {
        self.call_with_body(request(method, authority, path).map(|_| Bytes::new()), limit).await
    }

    /// Sends a request with its body; otherwise like [`Self::get`].
    pub async fn call_with_body(
        self,
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<HttpResponse, RequestError> {
        let request = request.map(Full::new);
        self.send(request, async |response| read(response, limit).await).await
    }

    /// Sends `request` and passes the response, whose body is unread, to `read`. The connection is
    /// closed when this returns.
    pub async fn send<T, E: From<RequestError>, B>(
        self,
        request: Request<B>,
        read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_LIMIT)
            .max_headers(HEADERS)
            .allow_obsolete_multiline_headers_in_responses(true)
            .handshake(TokioIo::new(self.0))
            .await
            .map_err(RequestError)?;
        let mut response =
            std::pin::pin!(
                async move { read(sender.send_request(request).await.map_err(RequestError)?).await }
            );
        // The connection is polled here and not in a separate task, so that its socket closes when
        // this future ends.
        tokio::select! {
            biased;
            response = &mut response => response,
            _ = connection => response.await,
        }
    }
}

/// Builds a request with `Host: authority` and `Connection: close`.
pub fn request(method: Method, authority: &str, path: &str) -> Request<Empty<Bytes>> {
    let request =
        Request::builder().method(method).uri(path).header(HOST, authority).header(CONNECTION, "close");
    request.body(Empty::new()).expect("path and authority come from checked URLs")
}

/// Reserved file descriptor for one connection, so that a connection can be opened even if all
/// other descriptors are in use.
#[derive(Debug)]
pub struct ReservedFd(Option<File>);

/// Guard during whose lifetime the reserved descriptor is free.
#[derive(Debug)]
pub struct ReservedFdGuard<'a>(&'a mut ReservedFd);

impl ReservedFd {
    pub fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Frees the descriptor until the result is dropped. Call [`connect`], which opens its socket
    /// immediately, before any other task runs.
    pub fn release(&mut self) -> ReservedFdGuard<'_> {
        self.0 = None;
        ReservedFdGuard(self)
    }
}

impl Default for ReservedFd {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ReservedFdGuard<'_> {
    fn drop(&mut self) {
        *self.0 = ReservedFd::new();
    }
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<HttpResponse, RequestError> {
    let status = response.status().as_u16();
    let mut incoming = response.into_body();
    let mut body = Vec::new();
    let mut turn_end = BYTES_PER_TURN;
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = limit - body.len();
        body.extend_from_slice(&data[..room.min(data.len())]);
        if data.len() > room {
            return Ok(HttpResponse { status, body, truncated: true });
        }
        if body.len() > turn_end {
            turn_end = body.len() + BYTES_PER_TURN;
            tokio::task::yield_now().await;
        }
    }
    Ok(HttpResponse { status, body, truncated: false })
}

#[cfg(test)]
mod tests;
