//! Decompresses the body of a target that sends gzip although it was not requested. Input and output
//! are chunks of limited size, however much the input expands.

use std::io::{self, BufRead, ErrorKind, Read};

use bytes::{Buf, Bytes};
use flate2::bufread::MultiGzDecoder;

/// Maximum size of a chunk of output in bytes.
const CHUNK: usize = 16 * 1024;

pub(super) struct Gunzip {
    decoder: MultiGzDecoder<Input>,
}

/// Compressed data that was received and not read yet.
#[derive(Default)]
struct Input {
    data: Bytes,
    /// True if no more data follows.
    has_ended: bool,
}

impl Gunzip {
    pub(super) fn new() -> Self {
        Self { decoder: MultiGzDecoder::new(Input::default()) }
    }

    /// Adds input; call [`Self::next`] until it returns `None` before the next input.
    pub(super) fn push(&mut self, data: Bytes) {
        self.decoder.get_mut().data = data;
    }

    pub(super) fn end(&mut self) {
        self.decoder.get_mut().has_ended = true;
    }

    /// Returns the next chunk of output, or `None` if it needs more input, or if the input has ended.
    pub(super) fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut chunk = vec![0; CHUNK];
        let length = loop {
            match self.decoder.read(&mut chunk) {
                Ok(length) => break length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        chunk.truncate(length);
        Ok((length > 0).then(|| chunk.into()))
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let data = self.fill_buf()?;
        let length = data.len().min(buffer.len());
        buffer[..length].copy_from_slice(&data[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.data.is_empty() && !self.has_ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(&self.data)
    }

    fn consume(&mut self, length: usize) {
        self.data.advance(length);
    }
}

#[cfg(test)]
mod tests;
