//! Response bodies, which are either complete in memory or streamed in chunks.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc;

#[derive(Debug)]
pub enum Body {
    Whole(Full<Bytes>),
    /// Chunks that are received from a channel until all senders are dropped.
    Chunks(mpsc::Receiver<Bytes>),
}

/// Sender for the chunks of a streamed body.
pub type Chunks = mpsc::Sender<Bytes>;

impl Body {
    /// Creates a streamed body that buffers at most `most` chunks.
    pub fn chunks(most: usize) -> (Chunks, Self) {
        let (sender, receiver) = mpsc::channel(most);
        (sender, Self::Chunks(receiver))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Full::new(bytes))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(context),
            Self::Chunks(chunks) => {
                chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Chunks(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Chunks(_) => SizeHint::default(),
        }
    }
}
