//! A buffered reader with the size and the reads of Go's `bufio.Reader`, because some of Go's rules depend
//! on what is buffered.

use probe::Reason;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The size of the buffer of a connection of Go's client.
pub(super) const BUFFER: usize = 4096;

#[derive(Debug)]
pub(super) struct Reader<S> {
    stream: S,
    buffer: Box<[u8; BUFFER]>,
    start: usize,
    end: usize,
    /// The number of bytes that may still be read.
    left: u64,
}

impl<S: AsyncRead + Unpin> Reader<S> {
    /// `limit` is the number of bytes that may be read.
    pub(super) fn new(stream: S, limit: u64) -> Self {
        Self { stream, buffer: Box::new([0; BUFFER]), start: 0, end: 0, left: limit }
    }

    pub(super) fn lift_limit(&mut self) {
        self.left = u64::MAX;
    }

    pub(super) fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// True if no more bytes can be added to what is buffered.
    pub(super) fn is_full(&self) -> bool {
        self.end - self.start == BUFFER
    }

    /// Reads once, and adds what was read to the buffer, which must not be full. At the end of the stream
    /// the error is [`Reason::Closed`], and [`Reason::Protocol`] if the limit is reached.
    pub(super) async fn fill(&mut self) -> Result<(), Reason> {
        if self.left == 0 {
            return Err(Reason::Protocol);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(BUFFER - self.end);
        match self.stream.read(&mut self.buffer[self.end..self.end + room]).await {
            Ok(0) | Err(_) => Err(Reason::Closed),
            Ok(bytes) => {
                self.end += bytes;
                self.left -= bytes as u64;
                Ok(())
            }
        }
    }

    /// Reads once if nothing is buffered, and discards at most `most` bytes. Returns their number, which
    /// is 0 at the end of the stream.
    pub(super) async fn skip(&mut self, most: usize) -> Result<usize, ReadError> {
        if self.buffered().is_empty() {
            (self.start, self.end) = (0, 0);
            self.end = self.stream.read(&mut self.buffer[..]).await.map_err(|_| ReadError)?;
        }
        let bytes = self.buffered().len().min(most);
        self.consume(bytes);
        Ok(bytes)
    }
}

/// The connection was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadError;
