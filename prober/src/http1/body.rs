//! The body of a response, of which only the end matters.

use probe::Reason;
use tokio::io::AsyncRead;

use super::chunks::Chunks;
use super::length::Length;
use super::reader::{ReadError, Reader};
use crate::response::BrokenBody;

impl From<ReadError> for BrokenBody {
    fn from(ReadError: ReadError) -> Self {
        Self
    }
}

impl From<Reason> for BrokenBody {
    fn from(_: Reason) -> Self {
        Self
    }
}

/// A body that has not been read, and the connection that it arrives on.
#[derive(Debug)]
pub(crate) struct Body<S> {
    reader: Reader<S>,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Bytes(u64),
    Chunks(Chunks),
    Connection,
}

impl<S: AsyncRead + Unpin> Body<S> {
    pub(super) fn new(reader: Reader<S>, length: Length) -> Self {
        let rest = match length {
            Length::Bytes(bytes) => Rest::Bytes(bytes),
            Length::Chunks => Rest::Chunks(Chunks::default()),
            Length::Connection => Rest::Connection,
        };
        Self { reader, rest }
    }

    /// False if the head says that the body has more bytes.
    pub(crate) fn may_be_short(&self, bytes: usize) -> bool {
        !matches!(self.rest, Rest::Bytes(declared) if declared > bytes as u64)
    }

    /// Reads to the end, but at most this many bytes.
    pub(crate) async fn read_at_most(&mut self, mut most: usize) -> Result<(), BrokenBody> {
        while most > 0 {
            match self.read(most).await? {
                0 => return Ok(()),
                read => most -= read,
            }
        }
        Ok(())
    }

    /// Reads at most `most` bytes, of which there are some, and returns their number; 0 at the end.
    async fn read(&mut self, most: usize) -> Result<usize, BrokenBody> {
        match &mut self.rest {
            Rest::Bytes(0) => Ok(0),
            Rest::Bytes(left) => {
                let read = self.reader.skip(most.min(usize::try_from(*left).unwrap_or(usize::MAX))).await?;
                *left -= read as u64;
                if read == 0 { Err(BrokenBody) } else { Ok(read) }
            }
            Rest::Chunks(chunks) => chunks.read(&mut self.reader, most).await,
            Rest::Connection => Ok(self.reader.skip(most).await?),
        }
    }
}
