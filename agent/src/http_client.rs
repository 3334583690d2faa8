//! One HTTP/1.1 request on a new connection, with a limit on what is read. Deadlines are the caller's: dropping a future ends its
//! connection.

use std::error::Error as _;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST};
use hyper::{Method, Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::address::Endpoint;

/// What the other side may send as a head, in bytes.
const HEAD_LIMIT: usize = 16 * 1024;

/// A connection that nothing has been sent on yet.
pub struct Connection(Box<dyn Stream>);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A whole answer, or its beginning.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// 100-999.
    pub status: u16,
    /// At most as long as the limit.
    pub body: Vec<u8>,
    /// The body was longer than the limit, which is where reading stopped.
    pub cut: bool,
}

/// Why there is no answer.
#[derive(Debug, Error)]
#[error("no HTTP answer: {0}")]
pub struct NoAnswer(#[from] hyper::Error);

impl NoAnswer {
    /// What came is no HTTP, or its body breaks off; otherwise the connection ended before an answer.
    pub fn is_garbage(&self) -> bool {
        let source = self.0.source().and_then(|source| source.downcast_ref::<io::Error>());
        let breaks_off = source.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        self.0.is_parse() || self.0.is_parse_too_large() || breaks_off
    }
}

/// A name that no resolver knows.
#[derive(Debug, Error)]
pub enum NoConnection {
    /// Nothing accepts there: refused, no such socket, no route.
    #[error("{0}")]
    Refused(io::Error),
    /// The name has no address.
    #[error("{0}")]
    UnknownName(io::Error),
}

/// Whom to dial, with nothing left to look up.
#[derive(Debug)]
pub enum Found<'a> {
    /// A Unix socket.
    Unix(&'a Path),
    /// Tried in order.
    Addresses(Vec<SocketAddr>),
}

/// Looks a name up; that is all which may take its time, and which goes on in a thread of its own when this is dropped. `localhost` is
/// 127.0.0.1, then ::1.
pub async fn look_up(endpoint: &Endpoint) -> Result<Found<'_>, NoConnection> {
    Ok(match endpoint {
        Endpoint::Unix(path) => Found::Unix(path),
        Endpoint::Ip(address) => Found::Addresses(vec![*address]),
        Endpoint::Localhost(port) => {
            let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            Found::Addresses(loopback.map(|ip| SocketAddr::new(ip, *port)).to_vec())
        }
        Endpoint::Name(name, port) => {
            let found = tokio::net::lookup_host((name.as_str(), *port)).await;
            Found::Addresses(found.map_err(NoConnection::UnknownName)?.collect())
        }
    })
}

/// Looks up and dials.
pub async fn connect(endpoint: &Endpoint) -> Result<Connection, NoConnection> {
    look_up(endpoint).await?.dial().await
}

impl Found<'_> {
    /// Dials.
    pub async fn dial(self) -> Result<Connection, NoConnection> {
        let stream: Box<dyn Stream> = match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(NoConnection::Refused)?),
            Self::Addresses(addresses) => {
                let stream = TcpStream::connect(addresses.as_slice()).await;
                Box::new(stream.map_err(NoConnection::Refused)?)
            }
        };
        Ok(Connection(stream))
    }
}

impl Connection {
    /// Sends `GET path` with `Host: authority` and reads the answer, of its body at most `limit` bytes.
    pub async fn get(self, authority: &str, path: &str, limit: usize) -> Result<Answer, NoAnswer> {
        self.ask(Method::GET, authority, path, limit).await
    }

    /// The same with POST and an empty body.
    pub async fn post(self, authority: &str, path: &str, limit: usize) -> Result<Answer, NoAnswer> {
        self.ask(Method::POST, authority, path, limit).await
    }

    async fn ask(
        self,
        method: Method,
        authority: &str,
        path: &str,
        limit: usize,
    ) -> Result<Answer, NoAnswer> {
        let request = request(method, authority, path);
        self.exchange(request, async |response| read(response, limit).await).await
    }

    /// Sends `request` and gives the answer, its body still to be read, to `read`. The connection is gone when this returns.
    pub async fn exchange<T, E: From<hyper::Error>>(
        self,
        request: Request<Empty<Bytes>>,
        read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (mut sender, connection) =
            http1::Builder::new().max_buf_size(HEAD_LIMIT).handshake(TokioIo::new(self.0)).await?;
        let mut answer = std::pin::pin!(async move { read(sender.send_request(request).await?).await });
        // Driven here and not by a task of its own, so that the socket is closed in the moment in which this ends.
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            _ = connection => answer.await,
        }
    }
}

/// `method path` with `Host: authority`, for one exchange.
pub fn request(method: Method, authority: &str, path: &str) -> Request<Empty<Bytes>> {
    let request =
        Request::builder().method(method).uri(path).header(HOST, authority).header(CONNECTION, "close");
    request.body(Empty::new()).expect("path and authority come from checked URLs")
}

/// A descriptor that is kept for one connection, so that it can be opened when all others are taken.
#[derive(Debug)]
pub struct Spare(Option<File>);

/// While this lives the descriptor is free.
#[derive(Debug)]
pub struct Released<'a>(&'a mut Spare);

impl Spare {
    /// Takes a descriptor.
    pub fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Gives it back until the result is dropped. To be used before anybody else runs: [`connect`] opens its socket at once.
    pub fn release(&mut self) -> Released<'_> {
        self.0 = None;
        Released(self)
    }
}

impl Default for Spare {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Released<'_> {
    fn drop(&mut self) {
        *self.0 = Spare::new();
    }
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<Answer, NoAnswer> {
    let status = response.status().as_u16();
    let mut incoming = response.into_body();
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = limit - body.len();
        body.extend_from_slice(&data[..room.min(data.len())]);
        if data.len() > room {
            return Ok(Answer { status, body, cut: true });
        }
    }
    Ok(Answer { status, body, cut: false })
}

#[cfg(test)]
mod tests;
