//! A body of messages from a queue, which detects whether the peer reads it.
//!
//! HTTP/2 takes a whole data frame from the body as soon as the peer's flow-control window has room
//! for one byte, and may keep it for as long as the peer makes no more room. It drops the bytes of a
//! frame once they are written to the connection, which [`Flow`] observes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// Records for how long data has been waiting to be written to the connection.
#[derive(Clone, Debug)]
pub struct Flow {
    start: Instant,
    waiting: Arc<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Bytes of messages that the body has received and the connection has not accepted.
    bytes: AtomicUsize,
    /// Milliseconds from the start until there were such bytes, or until the last frame was written.
    since: AtomicU64,
}

impl Default for Flow {
    fn default() -> Self {
        Self { start: Instant::now(), waiting: Arc::default() }
    }
}

impl Flow {
    /// Returns for how long the peer has not read the data that was sent; `None` if nothing is
    /// waiting.
    pub fn blocked(&self) -> Option<Duration> {
        let since = Duration::from_millis(self.waiting.since.load(Ordering::Acquire));
        let is_waiting = self.waiting.bytes.load(Ordering::Acquire) > 0;
        is_waiting.then(|| self.start.elapsed().saturating_sub(since))
    }

    fn restart(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.waiting.since.store(now, Ordering::Release);
    }

    fn received(&self, bytes: usize) {
        self.restart();
        self.waiting.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    fn written(&self, bytes: usize) {
        self.restart();
        self.waiting.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// The bytes of a frame, which are dropped when the frame is written.
struct FrameBytes {
    bytes: Bytes,
    flow: Flow,
}

impl AsRef<[u8]> for FrameBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for FrameBytes {
    fn drop(&mut self) {
        self.flow.written(self.bytes.len());
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

    fn begin(&mut self, parts: Parts) {
        self.flow.received(parts.iter().map(Bytes::len).sum());
        self.unsent = parts.into_iter().rev().filter(|part| !part.is_empty()).collect();
    }

    /// Splits off the bytes of the next frame; `None` if there are none left of the current message.
    /// A message that fits into a frame is sent in one, since the connection may be written for each
    /// frame. Only parts that are smaller than a frame are copied.
    fn next_frame(&mut self) -> Option<Bytes> {
        let length = self.unsent.iter().map(Bytes::len).sum::<usize>().min(FRAME_SIZE);
        let mut bytes = self.take(length)?;
        if bytes.len() < length {
            let mut frame = BytesMut::with_capacity(length);
            frame.extend_from_slice(&bytes);
            while let Some(part) = self.take(length - frame.len()) {
                frame.extend_from_slice(&part);
            }
            bytes = frame.freeze();
        }
        Some(Bytes::from_owner(FrameBytes { bytes, flow: self.flow.clone() }))
    }

    /// Splits off at most `limit` bytes of the first unsent part; `None` if that would be nothing.
    fn take(&mut self, limit: usize) -> Option<Bytes> {
        let part = self.unsent.last_mut().filter(|_| limit > 0)?;
        let taken = part.split_to(part.len().min(limit));
        if part.is_empty() {
            self.unsent.pop();
        }
        Some(taken)
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
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            match ready!(self.messages.poll_recv(context)) {
                Some(Ok(message)) => {
                    let parts = (self.encode)(message);
                    self.begin(parts);
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
