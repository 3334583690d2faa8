//! The body of an answer, and whether it moves: HTTP/2 asks for the next piece once the peer has taken the one before.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::Instant;

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
}

impl<B> Outlet<B> {
    pub(super) fn new(body: B, flow: Flow) -> Self {
        Self { body, flow }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Outlet<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.flow.moves();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && frame.is_data()
        {
            self.flow.waits();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
