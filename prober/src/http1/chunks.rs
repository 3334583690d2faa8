//! A chunked body, by the rules of Go's `chunkedReader` and `body.readTrailer`.

use tokio::io::AsyncRead;

use super::fields::FieldParser;
use super::reader::{BUFFER, Reader};
use crate::response::BrokenBody;

/// How many bytes of chunk lines Go allows beyond 16 for each chunk and twice the data.
const EXCESS_BYTES: i64 = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// The rest of the current chunk.
    left: u64,
    /// True at the end of a chunk's data, where a line break follows.
    is_at_line_break: bool,
    excess: i64,
    has_ended: bool,
}

impl Chunks {
    /// Reads at most `most` bytes of data and returns their number; 0 at the end. What has arrived after
    /// the data is examined too, so that an error there counts even if the data suffices.
    pub(super) async fn read<S: AsyncRead + Unpin>(
        &mut self,
        reader: &mut Reader<S>,
        most: usize,
    ) -> Result<usize, BrokenBody> {
        let mut read = 0;
        while !self.has_ended {
            if self.is_at_line_break {
                if read > 0 && reader.buffered().len() < 2 {
                    break;
                }
                line_break(reader).await?;
                self.is_at_line_break = false;
            }
            if self.left == 0 {
                if read > 0 && !reader.buffered().contains(&b'\n') {
                    break;
                }
                self.begin(reader).await?;
                continue;
            }
            if read == most {
                break;
            }
            let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(most - read);
            let bytes = reader.skip(room).await?;
            if bytes == 0 {
                return Err(BrokenBody);
            }
            read += bytes;
            self.left -= bytes as u64;
            self.is_at_line_break = self.left == 0;
        }
        Ok(read)
    }

    /// Reads the line before a chunk, and what follows the last one.
    async fn begin<S: AsyncRead + Unpin>(&mut self, reader: &mut Reader<S>) -> Result<(), BrokenBody> {
        let end = loop {
            match reader.buffered().iter().position(|byte| *byte == b'\n') {
                Some(end) => break end,
                None if reader.is_full() => return Err(BrokenBody),
                None => reader.fill().await?,
            }
        };
        let line = reader.buffered()[..end].strip_suffix(b"\r").ok_or(BrokenBody)?;
        let length = line.len();
        let size = size(line).ok_or(BrokenBody)?;
        reader.consume(end + 1);
        let counted = i64::try_from(length).unwrap_or(i64::MAX) + 2 - 16;
        let data = i64::try_from(size).unwrap_or(i64::MAX).saturating_mul(2);
        self.excess = self.excess.saturating_add(counted).saturating_sub(data).max(0);
        if self.excess > EXCESS_BYTES {
            return Err(BrokenBody);
        }
        self.left = size;
        if size == 0 {
            trailers(reader).await?;
            self.has_ended = true;
        }
        Ok(())
    }
}

/// Returns the size in a chunk's line, which may have an extension and trailing blanks.
fn size(line: &[u8]) -> Option<u64> {
    if line.contains(&b'\r') || line.len() >= BUFFER {
        return None;
    }
    let blanks = line.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let line = &line[..line.len() - blanks];
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    if digits.len() > 16 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

async fn line_break<S: AsyncRead + Unpin>(reader: &mut Reader<S>) -> Result<(), BrokenBody> {
    while reader.buffered().len() < 2 {
        reader.fill().await?;
    }
    if !reader.buffered().starts_with(b"\r\n") {
        return Err(BrokenBody);
    }
    reader.consume(2);
    Ok(())
}

/// Reads the trailers, which must fit in the buffer, as in Go.
async fn trailers<S: AsyncRead + Unpin>(reader: &mut Reader<S>) -> Result<(), BrokenBody> {
    while reader.buffered().len() < 2 {
        reader.fill().await?;
    }
    if reader.buffered().starts_with(b"\r\n") {
        reader.consume(2);
        return Ok(());
    }
    while !reader.buffered().windows(4).any(|window| window == b"\r\n\r\n") {
        if reader.is_full() {
            return Err(BrokenBody);
        }
        reader.fill().await?;
    }
    match FieldParser::default().parse(reader.buffered()) {
        Ok((consumed, true)) => {
            reader.consume(consumed);
            Ok(())
        }
        Ok((_, false)) | Err(_) => Err(BrokenBody),
    }
}

#[cfg(test)]
mod tests;
