//! The first words of a connection over TLS. Who owes them has one of the places for handshakes, so where these are scarce they have to
//! come soon: a client says them at once, whatever this machine has to do. How long the rest takes depends on both.

use std::io;
use std::pin::pin;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

/// So long they are waited for in any case, and then again and again while there are places for others.
const SOON: Duration = Duration::from_secs(1);

/// Reads a ClientHello. `Err`: it is none, or places are scarce.
pub(super) async fn client_hello<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    is_crowded: impl Fn() -> bool,
) -> io::Result<StartHandshake<S>> {
    let mut hello = pin!(LazyConfigAcceptor::new(Acceptor::default(), stream));
    loop {
        match timeout(SOON, &mut hello).await {
            Ok(hello) => return hello,
            Err(_) if is_crowded() => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
