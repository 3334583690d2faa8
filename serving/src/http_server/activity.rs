//! What a connection is busy with, so that a head that drips is told from a caller that waits.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
enum State {
    /// Since then a head is awaited of which something has come, or the first one.
    Head(Instant),
    /// A request is in work.
    Request,
    /// Since then nothing has come.
    Idle(Instant),
}

/// The state of one connection.
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

    /// Bytes came.
    fn bytes(&self) {
        self.set(|state| if let State::Idle(_) = state { State::Head(Instant::now()) } else { state });
    }

    /// A head is complete.
    pub(super) fn request(&self) {
        self.set(|_| State::Request);
    }

    /// Its answer is there.
    pub(super) fn answered(&self) {
        self.set(|_| State::Idle(Instant::now()));
    }

    /// Whether a head takes longer than `head`, or none has come for `idle`.
    pub(super) fn is_stale(&self, head: Duration, idle: Duration) -> bool {
        match *self.0.lock().expect("nothing panics while it holds this lock") {
            State::Head(since) => since.elapsed() > head,
            State::Request => false,
            State::Idle(since) => since.elapsed() > idle,
        }
    }
}

/// A stream that tells when bytes come.
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
