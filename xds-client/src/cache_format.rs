//! The bytes of the file with the last good configuration: compressed, because that of a mesh with many
//! services repeats itself, and Istio's volume for it is memory that the container is charged for.
//!
//! A file is a line with the name of the format, the size of the content as a number of eight bytes in
//! little-endian order, and the content in the format deflate. Older versions wrote only the content.

use std::io::{self, Write};
use std::iter;

use bytes::Bytes;
use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output, create_comp_flags_from_zip_params,
};
use miniz_oxide::inflate::decompress_slice_iter_to_slice;

const FORMAT: &[u8] = b"app-health xDS cache, deflate\n";
const SIZE_LENGTH: usize = 8;
/// Maximum size of the content in bytes.
pub(super) const SIZE_LIMIT: usize = 80 << 20;
/// The fastest level.
const LEVEL: i32 = 1;

/// Writes a file with this content.
pub(super) fn write(content: &[Bytes], file: &mut impl Write) -> io::Result<()> {
    let size: usize = content.iter().map(Bytes::len).sum();
    file.write_all(FORMAT)?;
    file.write_all(&(size as u64).to_le_bytes())?;
    let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, 0, 0));
    let last = (&[][..], TDEFLFlush::Finish);
    for (part, flush) in content.iter().map(|part| (&part[..], TDEFLFlush::None)).chain([last]) {
        let mut written = Ok(());
        let (status, _) = compress_to_output(&mut compressor, part, flush, |compressed| {
            written = file.write_all(compressed);
            written.is_ok()
        });
        written?;
        if !matches!(status, TDEFLStatus::Okay | TDEFLStatus::Done) {
            return Err(io::Error::other("cannot be compressed"));
        }
    }
    Ok(())
}

/// Returns the content of a file.
///
/// # Errors
/// If the file is damaged, or its content is larger than 80 MiB.
pub fn content(file: Vec<u8>) -> io::Result<Vec<u8>> {
    let Some(rest) = file.strip_prefix(FORMAT) else { return Ok(file) };
    let (size, compressed) = rest.split_first_chunk::<SIZE_LENGTH>().ok_or_else(damaged)?;
    let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
    if size > SIZE_LIMIT {
        return Err(io::Error::other("too large"));
    }
    let mut content = vec![0; size];
    match decompress_slice_iter_to_slice(&mut content, iter::once(compressed), false, true) {
        Ok(decompressed) if decompressed == size => Ok(content),
        _ => Err(damaged()),
    }
}

fn damaged() -> io::Error {
    io::Error::other("damaged: cannot be decompressed")
}

#[cfg(test)]
mod tests;
