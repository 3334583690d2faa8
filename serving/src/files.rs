//! Reads small files, up to a maximum size.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc::O_NONBLOCK;

/// Maximum size of a file in bytes.
const LIMIT: u64 = 1 << 20;

/// Reads a regular file of at most 1 MiB. Pipes and devices are not opened, because opening or
/// reading them may block.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    check(&fs::metadata(path)?)?;
    // Another program may replace the file by a pipe meanwhile, whose opening must not wait for a writer.
    let file = File::options().read(true).custom_flags(O_NONBLOCK).open(path)?;
    check(&file.metadata()?)?;
    let mut content = Vec::new();
    // The file may grow while it is read.
    if file.take(LIMIT + 1).read_to_end(&mut content)? as u64 > LIMIT {
        return Err(too_large());
    }
    Ok(content)
}

fn check(found: &Metadata) -> io::Result<()> {
    match () {
        () if !found.is_file() => Err(io::Error::other("not a regular file")),
        () if found.len() > LIMIT => Err(too_large()),
        () => Ok(()),
    }
}

fn too_large() -> io::Error {
    io::Error::other("larger than 1 MiB")
}
