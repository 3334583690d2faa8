//! Plaintext and TLS connections.

#[cfg(feature = "tls")]
mod tls;

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::listener::Stream;
use crate::source::Source;
#[cfg(feature = "tls")]
pub use tls::Tls;

/// What a server speaks on its connections. The servers are generic over it, so that a binary
/// without TLS servers does not link their code.
pub trait Transport: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Performs the handshake.
    fn accept(
        &self,
        stream: Stream,
        source: Option<Source>,
    ) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    fn socket(stream: &Self::Stream) -> &Stream;
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
