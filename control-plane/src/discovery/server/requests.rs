//! The body of a request as gRPC messages. A large one leaves no buffer of its size behind: most streams say little, and there are many.

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tonic::Status;

use discovery::xds::MESSAGE_LIMIT;

/// A flag, and the length in four bytes.
const HEAD: usize = 5;

/// A body that is read message by message.
pub(super) struct Requests<B> {
    body: B,
    unread: BytesMut,
}

impl<B: Body<Data = Bytes> + Unpin> Requests<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body, unread: BytesMut::new() }
    }

    /// The next message, none after the last. Nothing is lost by waiting for it twice.
    ///
    /// # Errors
    /// How the stream is to end: `RESOURCE_EXHAUSTED` for a message over the limit.
    pub(super) async fn message(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.unread.extend_from_slice(&data);
                }
                Some(Err(_)) => return Err(Status::cancelled("the request broke off")),
                None if self.unread.is_empty() => return Ok(None),
                None => return Err(Status::invalid_argument("request: ends within a message")),
            }
        }
    }

    /// A message that is there as a whole.
    fn whole(&mut self) -> Result<Option<Bytes>, Status> {
        let Some((&[flag, length @ ..], _)) = self.unread.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        if flag != 0 {
            return Err(Status::unimplemented("request: compressed, and no compression was agreed on"));
        }
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > MESSAGE_LIMIT {
            return Err(Status::resource_exhausted("request: more than 4 MiB"));
        }
        if self.unread.len() < HEAD + length {
            self.unread.reserve(HEAD + length - self.unread.len());
            return Ok(None);
        }
        self.unread.advance(HEAD);
        let message = self.unread.split_to(length).freeze();
        // Both share one allocation, which goes with the message.
        self.unread = BytesMut::from(&self.unread[..]);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests;
