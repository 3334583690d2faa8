//! A response body that detects whether the peer reads it.
//!
//! HTTP/2 takes a whole data frame from the body as soon as the peer's flow-control window has room
//! for one byte, and polls for the next frame before it checks the window again. Each message is
//! therefore split so that its last frame is a single byte: while that byte is waiting, the peer
//! has not made room for the bytes before it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::Status;

use super::requests::HEADER_LENGTH;
use discovery::message::{Response, Variant};
use discovery::xds;

/// Maximum size of one frame in bytes, which is the maximum frame size of HTTP/2 itself.
const FRAME_SIZE: usize = 16 << 10;
/// Initial size in bytes of the buffer that a response is encoded to.
const BUFFER: usize = 512;
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

/// The response body of a stream: its responses as gRPC messages, then the status as trailers.
pub(super) struct FlowControlledBody {
    responses: mpsc::Receiver<Result<Box<Response>, Status>>,
    variant: Variant,
    flow: Flow,
    /// Remaining bytes of the current message.
    rest: Bytes,
}

impl FlowControlledBody {
    pub(super) fn new(
        responses: mpsc::Receiver<Result<Box<Response>, Status>>,
        variant: Variant,
        flow: Flow,
    ) -> Self {
        Self { responses, variant, flow, rest: Bytes::new() }
    }

    /// Splits the next frame off `rest`, which must not be empty.
    fn next_frame(&mut self) -> Frame<Bytes> {
        self.flow.mark_waiting();
        let length = (self.rest.len() - 1).clamp(1, FRAME_SIZE);
        Frame::data(self.rest.split_to(length))
    }
}

impl Body for FlowControlledBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.rest.is_empty() {
            self.flow.mark_idle();
            match ready!(self.responses.poll_recv(context)) {
                Some(Ok(response)) => self.rest = encode(*response, self.variant),
                Some(Err(status)) => {
                    self.responses.close();
                    let mut trailers = HeaderMap::new();
                    let trailers = status.add_header(&mut trailers).map(|()| Frame::trailers(trailers));
                    return Poll::Ready(Some(trailers));
                }
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(Ok(self.next_frame())))
    }
}

/// Encodes a response as gRPC message. The buffer begins small, since most streams receive little.
fn encode(response: Response, variant: Variant) -> Bytes {
    let mut buffer = BytesMut::with_capacity(BUFFER);
    buffer.put_bytes(0, HEADER_LENGTH);
    xds::encode(response, variant, &mut buffer);
    let length = u32::try_from(buffer.len() - HEADER_LENGTH).expect("a message is smaller than 4 GiB");
    buffer[1..HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
    buffer.freeze()
}

#[cfg(test)]
mod tests;
