//! gRPC messages in HTTP/2 bodies. Messages stay encoded; a large one is neither copied nor decoded.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tonic::Status;

/// Length of the header of a message: a compression flag, and the message length in four bytes.
const HEADER_LENGTH: usize = 5;
/// Maximum size of one frame in bytes, which is the maximum frame size of HTTP/2 itself.
const FRAME_SIZE: usize = 16 << 10;
/// The buffer of a message gets its full size once this part of the message has arrived.
const RESERVING_PART: usize = 16;

/// A received body that is read message by message.
pub(super) struct Messages<B> {
    body: B,
    unread: BytesMut,
    /// Maximum size of a message in bytes.
    limit: usize,
    trailers: Option<HeaderMap>,
}

impl<B: Body<Data = Bytes> + Unpin> Messages<B>
where
    B::Error: std::error::Error,
{
    pub(super) fn new(body: B, limit: usize) -> Self {
        Self { body, unread: BytesMut::new(), limit, trailers: None }
    }

    /// Returns the next message. This method is cancel safe.
    ///
    /// # Errors
    /// Returns the status at the end of the body, which is `Ok` if the peer ended it without one.
    pub(super) async fn next(&mut self) -> Result<Bytes, Status> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(message);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.unread.extend_from_slice(&data),
                    Err(other) => self.trailers = other.into_trailers().ok(),
                },
                Some(Err(error)) => return Err(Status::unavailable(root_cause(&error))),
                None if self.unread.is_empty() => {
                    let status = self.trailers.as_ref().and_then(Status::from_header_map);
                    return Err(status.unwrap_or_else(|| Status::ok("the stream ended")));
                }
                None => return Err(Status::internal("the stream ended inside a message")),
            }
        }
    }

    /// Returns a message if all of its bytes have been received.
    fn buffered(&mut self) -> Result<Option<Bytes>, Status> {
        let Some((&[flag, length @ ..], _)) = self.unread.split_first_chunk::<HEADER_LENGTH>() else {
            return Ok(None);
        };
        if flag != 0 {
            return Err(Status::unimplemented("compressed message, but no compression was negotiated"));
        }
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.limit {
            return Err(Status::resource_exhausted(format!("message larger than {} MiB", self.limit >> 20)));
        }
        let missing = (HEADER_LENGTH + length).saturating_sub(self.unread.len());
        if missing > 0 {
            // The buffer grows with the data, because a header alone must not reserve memory. Once a part
            // has arrived, it grows only once more: copying a large message would need its size again.
            if self.unread.len() > length / RESERVING_PART {
                self.unread.reserve(missing);
            }
            return Ok(None);
        }
        self.unread.advance(HEADER_LENGTH);
        let message = self.unread.split_to(length).freeze();
        // `message` and `unread` share one allocation; copying the rest frees it with the message.
        self.unread = BytesMut::from(&self.unread[..]);
        Ok(Some(message))
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// A message to send, in parts.
pub(super) type Parts = [Bytes; 2];

/// A body that consists of messages from a queue.
pub(super) struct MessageBody {
    messages: mpsc::Receiver<Parts>,
    /// Unsent parts of the current message, in reverse order.
    unsent: Vec<Bytes>,
    /// True if the body ends with the status OK, as that of a server does.
    has_trailers: bool,
}

impl MessageBody {
    /// Returns the body of a request.
    pub(super) fn of_request(messages: mpsc::Receiver<Parts>) -> Self {
        Self { messages, unsent: Vec::new(), has_trailers: false }
    }

    /// Returns the body of a response.
    pub(super) fn of_response(messages: mpsc::Receiver<Parts>) -> Self {
        Self { has_trailers: true, ..Self::of_request(messages) }
    }
}

impl Body for MessageBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            match self.unsent.last_mut() {
                Some(part) if part.is_empty() => {
                    self.unsent.pop();
                }
                Some(part) => {
                    let length = part.len().min(FRAME_SIZE);
                    return Poll::Ready(Some(Ok(Frame::data(part.split_to(length)))));
                }
                None => match ready!(self.messages.poll_recv(context)) {
                    Some([message, suffix]) => {
                        let header = header(message.len() + suffix.len());
                        self.unsent = vec![suffix, message, header];
                    }
                    None if std::mem::take(&mut self.has_trailers) => {
                        let mut trailers = HeaderMap::new();
                        let added = Status::ok("").add_header(&mut trailers);
                        return Poll::Ready(Some(added.map(|()| Frame::trailers(trailers))));
                    }
                    None => return Poll::Ready(None),
                },
            }
        }
    }
}

fn header(length: usize) -> Bytes {
    let mut header = BytesMut::with_capacity(HEADER_LENGTH);
    header.put_u8(0);
    header.put_u32(u32::try_from(length).expect("a message is smaller than 4 GiB"));
    header.freeze()
}

#[cfg(test)]
mod tests;
