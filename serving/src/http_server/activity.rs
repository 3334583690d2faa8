//! Tracks what a connection is doing, to distinguish a client that sends a request slowly from one
//! that is idle.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// A request head must be complete at this time: the first one, or one that has begun.
    Head(Instant),
    /// A request is being processed.
    Request,
    /// The response must be read, and the next request begin, at this time.
    Responded(Instant),
}

/// Activity of one connection, shared between its stream and its service.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    state: Arc<Mutex<State>>,
    head: Duration,
    keep_alive: bool,
}

impl Activity {
    /// `head` is the timeout of a request head.
    pub(super) fn new(head: Duration, keep_alive: bool) -> Self {
        Self { state: Arc::new(Mutex::new(State::Head(Instant::now() + head))), head, keep_alive }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds this lock")
    }

    pub(super) fn state(&self) -> State {
        *self.lock()
    }

    /// Returns when the connection must be closed if its state does not change.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state() {
            State::Request => None,
            State::Head(deadline) | State::Responded(deadline) => Some(deadline),
        }
    }

    /// Records that bytes were received.
    fn received(&self) {
        let mut state = self.lock();
        if self.keep_alive && matches!(*state, State::Responded(_)) {
            *state = State::Head(Instant::now() + self.head);
        }
    }

    /// Records that a request's head is complete.
    pub(super) fn request(&self) {
        *self.lock() = State::Request;
    }

    /// Records that the response is ready; `within` is the time until the next request.
    pub(super) fn responded(&self, within: Duration) {
        *self.lock() = State::Responded(Instant::now() + within);
    }
}

/// A stream that records received bytes in its [`Activity`].
pub(super) struct Tracked<S> {
    stream: S,
    activity: Activity,
}

impl<S> Tracked<S> {
    pub(super) fn new(stream: S, activity: Activity) -> Self {
        Self { stream, activity }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tracked<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.received();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tracked<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
