//! One HTTP/1.1 GET on a new connection, with a limit on what is read. Deadlines are the caller's: dropping a future ends its connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::task::AbortOnDropHandle;

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

/// Dials. A name is looked up, and its addresses are tried in order; `localhost` is 127.0.0.1, then ::1.
pub async fn connect(endpoint: &Endpoint) -> Result<Connection, NoConnection> {
    let addresses: Vec<SocketAddr> = match endpoint {
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(NoConnection::Refused)?;
            return Ok(Connection(Box::new(stream)));
        }
        Endpoint::Ip(address) => vec![*address],
        Endpoint::Localhost(port) => {
            let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            loopback.map(|ip| SocketAddr::new(ip, *port)).to_vec()
        }
        Endpoint::Name(name, port) => {
            let found = tokio::net::lookup_host((name.as_str(), *port)).await;
            found.map_err(NoConnection::UnknownName)?.collect()
        }
    };
    let stream = TcpStream::connect(addresses.as_slice()).await.map_err(NoConnection::Refused)?;
    Ok(Connection(Box::new(stream)))
}

impl Connection {
    /// Sends `GET path` with `Host: authority` and reads the answer, of its body at most `limit` bytes.
    pub async fn get(self, authority: &str, path: &str, limit: usize) -> Result<Answer, NoAnswer> {
        let (mut sender, connection) =
            http1::Builder::new().max_buf_size(HEAD_LIMIT).handshake(TokioIo::new(self.0)).await?;
        let _driver = AbortOnDropHandle::new(tokio::spawn(connection));
        let request = Request::get(path)
            .header(HOST, authority)
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .expect("path and authority come from checked URLs");
        read(sender.send_request(request).await?, limit).await
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
