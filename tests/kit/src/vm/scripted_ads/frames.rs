//! Records the PINGs of an HTTP/2 client, which server libraries do not expose.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::{Shared, lock};

/// Length of the client connection preface.
const PREFACE: usize = 24;
/// Length of a frame header.
const HEAD: usize = 9;
const PING: u8 = 6;
/// The ACK flag of a PING.
const ACK: u8 = 1;

/// A connection whose incoming frames are observed.
pub(super) struct Watched<T> {
    stream: T,
    shared: Arc<Shared>,
    /// Number of bytes to skip before the next frame header.
    skip: usize,
    head: Vec<u8>,
}

impl<T> Watched<T> {
    pub(super) fn new(stream: T, shared: Arc<Shared>) -> Self {
        Self { stream, shared, skip: PREFACE, head: Vec::with_capacity(HEAD) }
    }

    fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.head.push(*byte);
            if let [high, middle, low, kind, flags, _, _, _, _] = *self.head {
                self.skip = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                self.head.clear();
                if kind == PING && flags & ACK == 0 {
                    lock(&self.shared.pings).push(Instant::now());
                }
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.pass(&buf.filled()[before..]);
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
