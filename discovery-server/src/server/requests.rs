//! Splits a request body into gRPC messages. The buffer of a large message is freed with the
//! message, since there are many streams and most send little.

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tonic::Status;

use discovery::xds::MESSAGE_LIMIT;

/// Length of the gRPC message header: a compression flag, and the message length in four bytes.
pub(super) const HEADER_LENGTH: usize = 5;

/// A request body that is read message by message.
pub(super) struct Requests<B> {
    body: B,
    unread: BytesMut,
}

impl<B: Body<Data = Bytes> + Unpin> Requests<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body, unread: BytesMut::new() }
    }

    /// Returns the next message, or `None` after the last one. This function is cancel-safe.
    ///
    /// # Errors
    /// Returns the status to end the stream with: `RESOURCE_EXHAUSTED` for a message over the
    /// limit.
    pub(super) async fn message(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(message) = self.buffered_message()? {
                return Ok(Some(message));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.unread.extend_from_slice(&data);
                }
                Some(Err(_)) => return Err(Status::cancelled("request body: read failed")),
                None if self.unread.is_empty() => return Ok(None),
                None => return Err(Status::invalid_argument("request: ends inside a message")),
            }
        }
    }

    /// Returns a message if all of its bytes have been received.
    fn buffered_message(&mut self) -> Result<Option<Bytes>, Status> {
        let Some((&[flag, length @ ..], _)) = self.unread.split_first_chunk::<HEADER_LENGTH>() else {
            return Ok(None);
        };
        if flag != 0 {
            return Err(Status::unimplemented(
                "request: compressed message, but no compression was negotiated",
            ));
        }
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > MESSAGE_LIMIT {
            return Err(Status::resource_exhausted("request: message larger than 4 MiB"));
        }
        if self.unread.len() < HEADER_LENGTH + length {
            self.unread.reserve(HEADER_LENGTH + length - self.unread.len());
            return Ok(None);
        }
        self.unread.advance(HEADER_LENGTH);
        let message = self.unread.split_to(length).freeze();
        // `message` and `unread` share one allocation; copying the rest frees it with the message.
        self.unread = BytesMut::from(&self.unread[..]);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests;
