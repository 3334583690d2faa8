//! A response body that detects whether the peer reads it.
//!
//! HTTP/2 takes a whole data frame from the body as soon as the peer's flow-control window has room
//! for one byte, and polls for the next frame before it checks the window again. Each message is
//! therefore split so that its last frame is a single byte: while that byte is waiting, the peer
//! has not made room for the bytes before it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::Instant;

/// Maximum size of one frame in bytes, which is the maximum frame size of HTTP/2 itself.
const FRAME_SIZE: usize = 16 << 10;
/// Value of [`Flow`] if no frame is waiting.
const IDLE: u64 = u64::MAX;

/// Records since when a frame has been waiting to be sent.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    start: Instant,
    since: Arc<AtomicU64>,
}

impl Flow {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), since: Arc::new(AtomicU64::new(IDLE)) }
    }

    /// Returns for how long the peer has not read the data that was sent; `None` if nothing is
    /// waiting.
    pub(super) fn blocked(&self) -> Option<Duration> {
        match self.since.load(Ordering::Relaxed) {
            IDLE => None,
            since => Some(self.start.elapsed().saturating_sub(Duration::from_millis(since))),
        }
    }

    fn mark_idle(&self) {
        self.since.store(IDLE, Ordering::Relaxed);
    }

    fn mark_waiting(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(IDLE - 1);
        self.since.store(now, Ordering::Relaxed);
    }
}

/// A body that updates its [`Flow`].
pub(super) struct FlowControlledBody<B> {
    body: B,
    flow: Flow,
    /// Remaining bytes of the current message.
    rest: Bytes,
}

impl<B> FlowControlledBody<B> {
    pub(super) fn new(body: B, flow: Flow) -> Self {
        Self { body, flow, rest: Bytes::new() }
    }

    /// Splits the next frame off `rest`, which must not be empty.
    fn next_frame(&mut self) -> Frame<Bytes> {
        self.flow.mark_waiting();
        let length = (self.rest.len() - 1).clamp(1, FRAME_SIZE);
        Frame::data(self.rest.split_to(length))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for FlowControlledBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_frame())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match polled {
            Poll::Ready(Some(Ok(frame))) if frame.data_ref().is_some_and(|data| !data.is_empty()) => {
                self.rest = frame.into_data().unwrap_or_default();
                Poll::Ready(Some(Ok(self.next_frame())))
            }
            other => {
                self.flow.mark_idle();
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
