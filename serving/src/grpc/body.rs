//! A body of messages from a queue, which detects whether the peer reads it.
//!
//! HTTP/2 takes a whole data frame from the body as soon as the peer's flow-control window has room
//! for one byte, and may keep it for as long as the peer makes no more room. It drops the bytes of a
//! frame once they are written to the connection, or copied to its buffer if they are few, which
//! [`Flow`] observes. It polls for the next frame before it checks the window, so that a message waits
//! here even if the window is used up.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::buf::Chain;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tonic::Status;

use super::{Flow, HEADER_LENGTH};

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

/// What is left of a message; bytes that are dropped with it wait no longer.
struct Unsent {
    parts: Chain<Chain<Bytes, Bytes>, Bytes>,
    flow: Flow,
}

impl Unsent {
    fn new([first, second, third]: Parts, flow: Flow) -> Self {
        let parts = first.chain(second).chain(third);
        flow.received(parts.remaining());
        Self { parts, flow }
    }

    /// Splits off the bytes of the next frame; `None` if there are none left. A message that fits into a
    /// frame is sent in one, since the connection may be written for each frame. Only frames with bytes of
    /// several parts are copied.
    fn next_frame(&mut self) -> Option<Bytes> {
        let length = self.parts.remaining().min(FRAME_SIZE);
        let frame = || {
            let bytes = self.parts.copy_to_bytes(length);
            Bytes::from_owner(FrameBytes { bytes, flow: self.flow.clone() })
        };
        (length > 0).then(frame)
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if self.parts.has_remaining() {
            self.flow.written(self.parts.remaining());
        }
    }
}

/// A body that consists of messages from a queue, which are encoded once the ones before are sent.
pub struct MessageBody<M, E> {
    messages: mpsc::Receiver<Result<M, Status>>,
    encode: E,
    flow: Flow,
    /// The current message.
    unsent: Option<Unsent>,
    /// The status that follows the last message; `None` for a request, which has none.
    status: Option<Status>,
}

impl<M, E> MessageBody<M, E> {
    /// Returns the body of a request, which ends with its queue.
    pub fn of_request(messages: mpsc::Receiver<Result<M, Status>>, encode: E) -> Self {
        Self { messages, encode, flow: Flow::default(), unsent: None, status: None }
    }

    /// Returns the body of a response, which ends with the status in its queue, or with the status OK.
    pub fn of_response(messages: mpsc::Receiver<Result<M, Status>>, flow: Flow, encode: E) -> Self {
        Self { flow, status: Some(Status::ok("")), ..Self::of_request(messages, encode) }
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
            if let Some(frame) = self.unsent.as_mut().and_then(Unsent::next_frame) {
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            self.unsent = None;
            match ready!(self.messages.poll_recv(context)) {
                Some(Ok(message)) => {
                    let parts = (self.encode)(message);
                    self.unsent = Some(Unsent::new(parts, self.flow.clone()));
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
