//! Reads the messages of a body.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::Body;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::HEADER_LENGTH;
use crate::shared_pool::{SharedPool, Slot};
use crate::source::Source;

/// The buffer of a message gets its full size once this part of the message has arrived.
const RESERVING_PART: usize = 16;

/// Limits of a message that is received only in part.
#[derive(Clone, Debug)]
pub struct IncompleteLimits {
    /// The bytes of memory for all such messages.
    pub bytes: SharedPool,
    pub source: Option<Source>,
    /// The time from the first byte of a message to its last.
    pub timeout: Duration,
}

struct Limited {
    limits: IncompleteLimits,
    /// The message in `unread`.
    incomplete: Option<Incomplete>,
}

struct Incomplete {
    slot: Slot,
    counted: usize,
    deadline: Instant,
}

impl Incomplete {
    /// Waits until the rest of the message is not awaited any longer, and returns why.
    async fn ended(&self) -> Status {
        tokio::select! {
            () = self.slot.evicted() => too_many_bytes(),
            () = sleep_until(self.deadline) => Status::deadline_exceeded("message is incomplete for too long"),
        }
    }
}

fn too_many_bytes() -> Status {
    Status::resource_exhausted("too many bytes of incomplete messages from this address")
}

/// A received body that is read message by message. The buffer of a large message is freed with the
/// message, since there are many streams and most send little.
pub struct Messages<B> {
    body: B,
    unread: BytesMut,
    /// Maximum size of a message in bytes.
    limit: usize,
    trailers: Option<HeaderMap>,
    /// Boxed, since only a server that others use has limits.
    limited: Option<Box<Limited>>,
}

impl<B: Body<Data = Bytes> + Unpin> Messages<B>
where
    B::Error: std::error::Error,
{
    pub fn new(body: B, limit: usize) -> Self {
        let unread = BytesMut::new();
        Self { body, unread, limit, trailers: None, limited: None }
    }

    /// Limits messages that are received only in part, beside the size of each.
    pub fn limit_incomplete(self, limits: IncompleteLimits) -> Self {
        Self { limited: Some(Box::new(Limited { limits, incomplete: None })), ..self }
    }

    /// Returns the next message. This method is cancel safe.
    ///
    /// # Errors
    /// Returns the status at the end of the body, which is `Ok` if the peer ended it without one.
    pub async fn next(&mut self) -> Result<Bytes, Status> {
        loop {
            if let Some(message) = self.buffered()? {
                if let Some(limited) = &mut self.limited {
                    limited.incomplete = None;
                }
                return Ok(message);
            }
            self.count_incomplete()?;
            let frame = match self.limited.as_ref().and_then(|limited| limited.incomplete.as_ref()) {
                None => self.body.frame().await,
                Some(incomplete) => tokio::select! {
                    frame = self.body.frame() => frame,
                    status = incomplete.ended() => return Err(status),
                },
            };
            match frame {
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

    /// Counts the memory of `unread` that has not been counted yet, also where no data has arrived: the
    /// allocator may return memory that was in use, so that the kernel charges for it.
    fn count_incomplete(&mut self) -> Result<(), Status> {
        if self.unread.is_empty() {
            return Ok(());
        }
        let capacity = self.unread.capacity();
        let Some(limited) = &mut self.limited else { return Ok(()) };
        let limits = &limited.limits;
        let incomplete = limited.incomplete.get_or_insert_with(|| Incomplete {
            slot: limits.bytes.open(limits.source),
            counted: 0,
            deadline: Instant::now() + limits.timeout,
        });
        let new = capacity.saturating_sub(incomplete.counted);
        incomplete.counted += new;
        if new > 0 { incomplete.slot.grow(new).map_err(|_| too_many_bytes()) } else { Ok(()) }
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

#[cfg(test)]
mod tests;
