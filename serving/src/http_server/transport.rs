//! Plaintext and TLS connections.

#[cfg(feature = "tls")]
mod tls;

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::listener::{Peer, Stream};
use crate::source::Source;
#[cfg(feature = "tls")]
pub use tls::Tls;

/// What a server speaks on its connections. The servers are generic over it, so that a binary
/// without TLS servers does not link their code. A trusted client is one whose address or certificate
/// says that it is, for example, an API server.
pub trait Transport: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Performs the handshake.
    fn accept(
        &self,
        stream: Stream,
        source: Option<Source>,
    ) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    fn socket(stream: &Self::Stream) -> &Stream;

    /// Returns false if this client may not connect.
    fn admits_peer(&self, _: Peer) -> bool {
        true
    }

    /// Returns true if the address of the client is trusted.
    fn is_trusted_peer(&self, _: Peer) -> bool {
        false
    }

    /// Returns true if the client has a valid certificate.
    fn has_certificate(_: &Self::Stream) -> bool {
        false
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Plaintext;

impl Transport for Plaintext {
    type Stream = Stream;

    async fn accept(&self, stream: Stream, _: Option<Source>) -> io::Result<Stream> {
        Ok(stream)
    }

    fn socket(stream: &Stream) -> &Stream {
        stream
    }
}
