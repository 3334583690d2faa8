//! Plaintext and TLS connections.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::listener::Stream;

/// What a server speaks on its connections. The servers are generic over it, so that a binary
/// without TLS servers does not link their code.
pub trait Transport: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Performs the handshake.
    fn accept(&self, stream: Stream) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    fn socket(stream: &Self::Stream) -> &Stream;
}

#[derive(Debug, Clone, Copy)]
pub struct Plaintext;

impl Transport for Plaintext {
    type Stream = Stream;

    async fn accept(&self, stream: Stream) -> io::Result<Stream> {
        Ok(stream)
    }

    fn socket(stream: &Stream) -> &Stream {
        stream
    }
}

/// TLS with a configuration that may change; each connection uses the current one.
#[derive(Debug, Clone)]
pub struct Tls(pub watch::Receiver<Arc<ServerConfig>>);

impl Transport for Tls {
    type Stream = TlsStream<Stream>;

    async fn accept(&self, stream: Stream) -> io::Result<TlsStream<Stream>> {
        let config = self.0.borrow().clone();
        TlsAcceptor::from(config).accept(stream).await
    }

    fn socket(stream: &TlsStream<Stream>) -> &Stream {
        stream.get_ref().0
    }
}
