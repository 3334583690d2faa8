//! A body of messages from a queue, which detects whether the peer reads it.
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

use super::HEADER_LENGTH;

/// Maximum size of one frame in bytes, which is the maximum frame size of HTTP/2 itself.
const FRAME_SIZE: usize = 16 << 10;
/// Initial size in bytes of the buffer that a message is encoded to.
const BUFFER: usize = 512;
/// Value of [`Flow`] if no frame is waiting.
const IDLE: u64 = u64::MAX;

/// A message with its header, in parts.
pub type Parts = [Bytes; 3];

/// Adds the header to a message of two parts, which are not copied.
pub fn parts(message: Bytes, suffix: Bytes) -> Parts {
    let header = header(message.len() + suffix.len());
    [Bytes::copy_from_slice(&header), message, suffix]
}

/// Encodes a message behind its header. The buffer begins small, since most streams receive little.
pub fn encoded(encode: impl FnOnce(&mut BytesMut)) -> Parts {
    let mut buffer = BytesMut::with_capacity(BUFFER);
    buffer.put_bytes(0, HEADER_LENGTH);
    encode(&mut buffer);
    let header = header(buffer.len() - HEADER_LENGTH);
    buffer[..HEADER_LENGTH].copy_from_slice(&header);
    [buffer.freeze(), Bytes::new(), Bytes::new()]
}

fn header(length: usize) -> [u8; HEADER_LENGTH] {
    let length = u32::try_from(length).expect("a message is smaller than 4 GiB");
    let [a, b, c, d] = length.to_be_bytes();
    [0, a, b, c, d]
}

/// Records since when a frame has been waiting to be sent.
#[derive(Clone, Debug)]
pub struct Flow {
    start: Instant,
    since: Arc<AtomicU64>,
}

impl Default for Flow {
    fn default() -> Self {
        Self { start: Instant::now(), since: Arc::new(AtomicU64::new(IDLE)) }
    }
}

impl Flow {
    /// Returns for how long the peer has not read the data that was sent; `None` if nothing is
    /// waiting.
    pub fn blocked(&self) -> Option<Duration> {
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

/// A body that consists of messages from a queue, which are encoded once the ones before are sent.
pub struct MessageBody<M, E> {
    messages: mpsc::Receiver<Result<M, Status>>,
    encode: E,
    flow: Flow,
    /// Unsent parts of the current message, in reverse order; none is empty.
    unsent: Vec<Bytes>,
    /// The status that follows the last message; `None` for a request, which has none.
    status: Option<Status>,
}

impl<M, E> MessageBody<M, E> {
    /// Returns the body of a request, which ends with its queue.
    pub fn of_request(messages: mpsc::Receiver<Result<M, Status>>, encode: E) -> Self {
        Self { messages, encode, flow: Flow::default(), unsent: Vec::new(), status: None }
    }

    /// Returns the body of a response, which ends with the status in its queue, or with the status OK.
    pub fn of_response(messages: mpsc::Receiver<Result<M, Status>>, flow: Flow, encode: E) -> Self {
        Self { flow, status: Some(Status::ok("")), ..Self::of_request(messages, encode) }
    }

    /// Splits off the next frame; `None` if the current message is sent.
    fn next_frame(&mut self) -> Option<Frame<Bytes>> {
        let is_last = self.unsent.len() == 1;
        let part = self.unsent.last_mut()?;
        let length = if is_last { (part.len() - 1).clamp(1, FRAME_SIZE) } else { part.len().min(FRAME_SIZE) };
        let frame = Frame::data(part.split_to(length));
        if part.is_empty() {
            self.unsent.pop();
        }
        self.flow.mark_waiting();
        Some(frame)
    }
}

impl<M, E: FnMut(M) -> Parts + Unpin> Body for MessageBody<M, E> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some(frame) = self.next_frame() {
                return Poll::Ready(Some(Ok(frame)));
            }
            self.flow.mark_idle();
            match ready!(self.messages.poll_recv(context)) {
                Some(Ok(message)) => {
                    let parts = (self.encode)(message);
                    self.unsent = parts.into_iter().rev().filter(|part| !part.is_empty()).collect();
                }
                Some(Err(status)) => {
                    self.messages.close();
                    return Poll::Ready(self.status.take().map(|_| trailers(&status)));
                }
                None => return Poll::Ready(self.status.take().map(|status| trailers(&status))),
            }
        }
    }
}

fn trailers(status: &Status) -> Result<Frame<Bytes>, Status> {
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))
}

#[cfg(test)]
mod tests;
