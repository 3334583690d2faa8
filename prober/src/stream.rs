//! A connection in plaintext or over TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub enum Stream {
    Plaintext(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl Stream {
    /// An application without TCP_NODELAY sends its response only after its settings or session tickets are
    /// acknowledged. The kernel delays that by 40 ms, because the request was sent before they arrived.
    fn acknowledge_at_once(&self) {
        let socket = match self {
            Self::Plaintext(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.get_ref().0,
        };
        // Only the time until the response depends on it.
        let _ = socket.set_quickack(true);
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context, buffer: &mut ReadBuf) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_read(context, buffer),
            // As in Go, the end of the connection ends a TLS stream, also without an alert.
            #[cfg(feature = "tls")]
            Self::Tls(stream) => match Pin::new(stream).poll_read(context, buffer) {
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Poll::Ready(Ok(()))
                }
                polled => polled,
            },
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_write(context, bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let flushed = match stream {
            Self::Plaintext(stream) => Pin::new(stream).poll_flush(context),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        };
        if flushed.is_ready() {
            stream.acknowledge_at_once();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_shutdown(context),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
