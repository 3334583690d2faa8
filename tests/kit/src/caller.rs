//! An HTTP client that opens a new connection for each request, as kubelet does, and parses
//! responses strictly.

use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::wait;

pub mod tls;

/// Upper bound of a response, in bytes.
const ANSWER: usize = 1 << 20;

/// A response, as far as it was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// 0 if there was no status line.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The decoded body, without chunk framing.
    pub body: Vec<u8>,
    /// Whether the whole body was received.
    pub complete: bool,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the first word of a body that the filter or the agent wrote: `refused` for `refused:
    /// nothing listens …`.
    pub fn word(&self) -> String {
        self.text().split(':').next().unwrap_or_default().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Probes `path` as kubelet does: a GET with kubelet's `User-Agent` and `Connection: close`.
pub async fn probe(address: SocketAddr, path: &str) -> Answer {
    get(address, path, &[("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"), ("Connection", "close")]).await
}

/// Sends a GET with these headers.
pub async fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    get_host(address, &address.to_string(), path, headers).await
}

/// Sends a GET to `address` for another host, with these headers.
pub async fn get_host(address: SocketAddr, host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    send(address, request.as_bytes()).await
}

/// Sends `bytes` on a new connection and reads one response.
pub async fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let exchange = async {
        let Ok(stream) = TcpStream::connect(address).await else { return Answer::default() };
        exchange(stream, bytes).await
    };
    tokio::time::timeout(wait::timeout(), exchange)
        .await
        .unwrap_or_else(|_| panic!("no response within {:?}", wait::timeout()))
}

/// Sends a GET over a Unix socket and returns the body.
pub async fn get_unix(socket: &Path, path: &str) -> std::io::Result<String> {
    let stream = UnixStream::connect(socket).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    Ok(exchange(stream, request.as_bytes()).await.text())
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, request: &[u8]) -> Answer {
    let mut bytes = Vec::new();
    // If the server resets the connection during the write or read, what was received so far is the
    // response.
    if stream.write_all(request).await.is_ok() {
        let mut block = [0; 16 << 10];
        while let Ok(read) = stream.read(&mut block).await {
            bytes.extend_from_slice(&block[..read]);
            let answer = parse(&bytes);
            if read == 0 || answer.complete || bytes.len() > ANSWER {
                break;
            }
        }
    }
    parse(&bytes)
}

/// Parses one HTTP/1.1 response.
pub fn parse(bytes: &[u8]) -> Answer {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Answer::default();
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let find = |name: &str| headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
    let (body, complete) = match (find("content-length"), find("transfer-encoding")) {
        (Some(length), _) => {
            let length = length.parse().unwrap_or(usize::MAX);
            (rest[..rest.len().min(length)].to_vec(), rest.len() >= length)
        }
        (None, Some("chunked")) => chunks(rest),
        _ => (rest.to_vec(), matches!(status, 204 | 304)),
    };
    Answer { status, headers, body, complete }
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|window| window == b"\r\n") else { return (body, false) };
        let size =
            std::str::from_utf8(&rest[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size else { return (body, false) };
        rest = &rest[line + 2..];
        if size == 0 {
            return (body, true);
        }
        if rest.len() < size + 2 {
            body.extend_from_slice(&rest[..rest.len().min(size)]);
            return (body, false);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}
