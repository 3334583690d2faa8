//! A stream wrapper that limits the number of bytes read. hyper skips interim (1xx) responses
//! without a limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Kind of the I/O error that is returned at the limit.
pub(super) const LIMIT_ERROR: io::ErrorKind = io::ErrorKind::FileTooLarge;

/// A stream and the number of bytes that may still be read from it.
#[derive(Debug)]
pub(super) struct ReadLimit<S> {
    stream: S,
    left: usize,
}

impl<S> ReadLimit<S> {
    pub(super) fn new(stream: S, bytes: usize) -> Self {
        Self { stream, left: bytes }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(LIMIT_ERROR.into()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let length = buffer.filled().len().saturating_sub(before);
        self.left = self.left.saturating_sub(length);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
