//! Reads small files, up to a maximum size.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Maximum size of a file in bytes.
const LIMIT: u64 = 1 << 20;

/// Reads a regular file of at most 1 MiB. Pipes and devices are never opened, because opening or
/// reading them may block.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut content = Vec::new();
    // The file may grow while it is read.
    if found.len() > LIMIT || File::open(path)?.take(LIMIT + 1).read_to_end(&mut content)? as u64 > LIMIT {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(content)
}
