//! Tracks what a connection is doing, to distinguish a client that sends a request slowly from one
//! that is idle.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
enum State {
    /// Waiting since then for a complete header section: the first one, or one that has begun.
    Head(Instant),
    /// A request is being processed.
    Request,
    /// Nothing has been received since then.
    Idle(Instant),
}

/// Activity of one connection, shared between its stream and its service.
#[derive(Clone, Debug)]
pub(super) struct Activity(Arc<Mutex<State>>);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State::Head(Instant::now()))))
    }

    fn set(&self, change: impl FnOnce(State) -> State) {
        let mut state = self.0.lock().expect("nothing panics while it holds this lock");
        *state = change(*state);
    }

    /// Records that bytes were received.
    fn bytes(&self) {
        self.set(|state| if let State::Idle(_) = state { State::Head(Instant::now()) } else { state });
    }

    /// Records that a request's header section is complete.
    pub(super) fn request(&self) {
        self.set(|_| State::Request);
    }

    /// Records that the response is ready.
    pub(super) fn answered(&self) {
        self.set(|_| State::Idle(Instant::now()));
    }

    /// True if receiving a header section takes longer than `head`, or the connection has been idle
    /// longer than `idle`.
    pub(super) fn is_stale(&self, head: Duration, idle: Duration) -> bool {
        match *self.0.lock().expect("nothing panics while it holds this lock") {
            State::Head(since) => since.elapsed() > head,
            State::Request => false,
            State::Idle(since) => since.elapsed() > idle,
        }
    }
}

/// A stream that records received bytes in its [`Activity`].
pub(super) struct Watched<S> {
    stream: S,
    activity: Activity,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, activity: Activity) -> Self {
        Self { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.bytes();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
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
