//! The body of an answer, and whether it moves.
//!
//! HTTP/2 takes a piece of a body whole as soon as the peer has room for a single byte of it, and asks for the next one before it looks for
//! room. So a message goes out in pieces whose last is one byte: while that one waits, so does the peer's room for all before it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::Instant;

/// So much goes out as one piece: HTTP/2's own frames are no larger.
const PIECE: usize = 16 << 10;
/// Nothing is on its way.
const IDLE: u64 = u64::MAX;

/// Since when a piece is on its way.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    start: Instant,
    since: Arc<AtomicU64>,
}

impl Flow {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), since: Arc::new(AtomicU64::new(IDLE)) }
    }

    /// How long the peer has not taken what it was sent.
    pub(super) fn blocked(&self) -> Option<Duration> {
        match self.since.load(Ordering::Relaxed) {
            IDLE => None,
            since => Some(self.start.elapsed().saturating_sub(Duration::from_millis(since))),
        }
    }

    fn moves(&self) {
        self.since.store(IDLE, Ordering::Relaxed);
    }

    fn waits(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(IDLE - 1);
        self.since.store(now, Ordering::Relaxed);
    }
}

/// A body that keeps its [`Flow`] true.
pub(super) struct Outlet<B> {
    body: B,
    flow: Flow,
    /// Of the message that is on its way.
    rest: Bytes,
}

impl<B> Outlet<B> {
    pub(super) fn new(body: B, flow: Flow) -> Self {
        Self { body, flow, rest: Bytes::new() }
    }

    /// The next piece, once there is something to cut it from.
    fn piece(&mut self) -> Frame<Bytes> {
        self.flow.waits();
        let length = (self.rest.len() - 1).clamp(1, PIECE);
        Frame::data(self.rest.split_to(length))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Outlet<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match polled {
            Poll::Ready(Some(Ok(frame))) if frame.data_ref().is_some_and(|data| !data.is_empty()) => {
                self.rest = frame.into_data().unwrap_or_default();
                Poll::Ready(Some(Ok(self.piece())))
            }
            other => {
                self.flow.moves();
                other
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests;
