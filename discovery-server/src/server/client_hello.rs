//! Reads the ClientHello of a TLS connection. A connection that has not sent it occupies a
//! handshake permit, so if permits are scarce it must arrive promptly: a client sends it
//! immediately, independent of the load of this machine, while the duration of the remaining
//! handshake depends on both sides.

use std::io;
use std::pin::pin;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

/// Minimum wait for a ClientHello. It is extended by the same time as long as enough permits are
/// free.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads a ClientHello. Returns an error if the data is not one, or if it is late and permits are
/// scarce.
pub(super) async fn read_client_hello<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    is_scarce: impl Fn() -> bool,
) -> io::Result<StartHandshake<S>> {
    let mut hello = pin!(LazyConfigAcceptor::new(Acceptor::default(), stream));
    loop {
        match timeout(PATIENCE, &mut hello).await {
            Ok(hello) => return hello,
            Err(_) if is_scarce() => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
