//! A connection that says when its other end is about to close it. An HTTP/2 client lets its streams go on after a GOAWAY, and a stream
//! to a discovery server never ends by itself: the server would wait for us in vain.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// Of a frame, by RFC 9113.
const HEAD: usize = 9;
/// The type of the frame.
const GOAWAY: u8 = 7;

/// PURE. Where in the row of frames the bytes are.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; HEAD],
    /// How much of the head is there.
    filled: usize,
    /// How much of the payload is still to come.
    payload: usize,
}

impl Frames {
    /// Takes the next bytes. `true`: a GOAWAY is among them.
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

/// A connection of an HTTP/2 client.
#[derive(Debug)]
pub(super) struct Watched<T> {
    stream: T,
    frames: Frames,
    goes_away: Arc<Notify>,
}

impl<T> Watched<T> {
    /// And what is told once the server has said GOAWAY.
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
