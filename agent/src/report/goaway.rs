//! A stream wrapper that detects an HTTP/2 GOAWAY frame. hyper lets open streams continue after a
//! GOAWAY, and a stream to a discovery server never ends by itself, so the server would wait in
//! vain for its clients to disconnect.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// Length of a frame header in bytes (RFC 9113, section 4.1).
const HEAD: usize = 9;
/// Frame type of GOAWAY (RFC 9113, section 6.8).
const GOAWAY: u8 = 7;

/// Parser state: the position within the sequence of frames.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; HEAD],
    /// Number of bytes of `head` that have arrived.
    filled: usize,
    /// Number of payload bytes of the current frame that have not arrived yet.
    payload: usize,
}

impl Frames {
    /// Processes the next bytes. Returns true if they complete the header of a GOAWAY frame.
    fn pass(&mut self, mut bytes: &[u8]) -> bool {
        let mut goes_away = false;
        loop {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEAD - self.filled).min(bytes.len());
            if taken == 0 {
                return goes_away;
            }
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEAD {
                let [high, middle, low, kind, ..] = self.head;
                self.payload = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                self.filled = 0;
                goes_away |= kind == GOAWAY;
            }
        }
    }
}

/// An HTTP/2 client connection whose incoming frames are inspected.
#[derive(Debug)]
pub(super) struct Watched<T> {
    stream: T,
    frames: Frames,
    goes_away: Arc<Notify>,
}

impl<T> Watched<T> {
    /// Wraps `stream`. The returned [`Notify`] is notified when a GOAWAY frame arrives.
    pub(super) fn new(stream: T) -> (Self, Arc<Notify>) {
        let goes_away = Arc::new(Notify::new());
        (Self { stream, frames: Frames::default(), goes_away: goes_away.clone() }, goes_away)
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
        if self.frames.pass(&buf.filled()[before..]) {
            self.goes_away.notify_one();
        }
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

#[cfg(test)]
mod tests;
