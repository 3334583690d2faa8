//! TLS connections.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use address::Cidr;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::Transport;
use crate::http_server::listener::{Peer, Stream};
use crate::source::Source;
use crate::source_permits::SourcePermits;

/// TLS with a configuration that may change; each connection uses the current one.
#[derive(Debug, Clone)]
pub struct Tls {
    config: watch::Receiver<Arc<ServerConfig>>,
    handshakes: SourcePermits,
    trusted: Arc<[Cidr]>,
}

impl Tls {
    pub fn new(config: watch::Receiver<Arc<ServerConfig>>) -> Self {
        Self { config, handshakes: SourcePermits::new(1), trusted: Arc::default() }
    }

    /// Trusts the clients of these networks, besides those with a certificate.
    pub fn with_trusted(self, networks: Vec<Cidr>) -> Self {
        Self { trusted: networks.into(), ..self }
    }
}

impl Transport for Tls {
    type Stream = TlsStream<Stream>;

    async fn accept(&self, stream: Stream, source: Option<Source>) -> io::Result<TlsStream<Stream>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let permit = self.handshakes.of(source).acquire_owned().await.map_err(io::Error::other)?;
        // Work for other sources that is ready runs first.
        yield_now().await;
        let config = self.config.borrow().clone();
        let mut handshake = pin!(hello.into_stream(config));
        // The response to the ClientHello needs almost all CPU time of a handshake.
        if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(handshake.as_mut().poll(context))).await {
            return done;
        }
        drop(permit);
        handshake.await
    }

    fn socket(stream: &TlsStream<Stream>) -> &Stream {
        stream.get_ref().0
    }

    fn is_trusted_peer(&self, peer: Peer) -> bool {
        let Peer::Tcp(address) = peer else { return false };
        let ip = address.ip().to_canonical();
        self.trusted.iter().any(|network| network.contains(ip))
    }

    fn has_certificate(stream: &TlsStream<Stream>) -> bool {
        stream.get_ref().1.peer_certificates().is_some()
    }
}
