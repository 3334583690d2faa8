//! An HTTP client that behaves like kubelet's prober: a new connection for each probe, the request
//! in one write, the whole response read, then the connection closed.

use std::io::{Error, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use kit::caller::parse;
use kit::load::kubelet_request;
use tokio::time::Instant;

pub(crate) struct Caller {
    address: SocketAddr,
    request: Vec<u8>,
}

impl Caller {
    pub(crate) fn new(address: SocketAddr, path: &str) -> Self {
        Self { address, request: kubelet_request(address, path) }
    }

    /// Sends one request and returns the time from before the connection to the last byte of the
    /// response.
    pub(crate) fn ask(&self, expected: u16) -> Result<Duration> {
        let started = Instant::now();
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(&self.request)?;
        let (mut bytes, mut length) = ([0; 4096], 0);
        loop {
            let read = stream.read(&mut bytes[length..])?;
            length += read;
            let answer = parse(&bytes[..length]);
            if answer.complete {
                let took = started.elapsed();
                return if answer.status == expected {
                    Ok(took)
                } else {
                    Err(Error::other(format!("{}: status {}", self.address, answer.status)))
                };
            }
            if read == 0 {
                return Err(Error::other(format!("{}: incomplete response", self.address)));
            }
        }
    }
}
