//! Response bodies, which are either complete in memory or streamed in chunks.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use thiserror::Error;
use tokio::sync::mpsc;

#[derive(Debug)]
pub enum Body {
    Whole(Full<Bytes>),
    /// Chunks that are received from a channel until all senders are dropped.
    Chunks(mpsc::Receiver<Bytes>),
    /// A body of one byte that is never sent: the connection ends instead.
    Broken {
        /// True once the head has been sent.
        has_head: bool,
    },
}

/// The body breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the body breaks off")]
pub struct BrokenOff;

/// Sender for the chunks of a streamed body.
pub type Chunks = mpsc::Sender<Bytes>;

impl Body {
    /// Creates a streamed body that buffers at most `most` chunks.
    pub fn chunks(most: usize) -> (Chunks, Self) {
        let (sender, receiver) = mpsc::channel(most);
        (sender, Self::Chunks(receiver))
    }

    /// Creates a body that breaks off, so that the client has the head of a response only.
    pub fn broken() -> Self {
        Self::Broken { has_head: false }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Full::new(bytes))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(context).map_err(|never| match never {}),
            // hyper sends the head only while it awaits the body.
            Self::Broken { has_head: has_head @ false } => {
                *has_head = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Broken { has_head: true } => Poll::Ready(Some(Err(BrokenOff))),
            Self::Chunks(chunks) => {
                chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Chunks(_) | Self::Broken { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Chunks(_) => SizeHint::default(),
            Self::Broken { .. } => SizeHint::with_exact(1),
        }
    }
}
