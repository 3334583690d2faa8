//! The runtime that commands run on, and the descriptors of the process.

use std::io;
use std::os::unix::net::UnixStream;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

/// Makes one with so many threads; 1: that of the caller.
pub fn new(threads: usize) -> Result<Runtime, Failure> {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    room()
        .and_then(|()| builder.worker_threads(threads).enable_all().build())
        .map_err(|error| Failure::Machine(format!("cannot start: {error}")))
}

/// Whether there are descriptors for it: where they end with the pair of sockets that tokio makes for signals, it panics.
fn room() -> io::Result<()> {
    let _pairs = (UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?);
    Ok(())
}

/// Raises the soft limit of open descriptors to the hard one: the limit that holds from then on.
///
/// # Errors
/// The system's, and the limit is what it was.
pub fn raise_descriptors() -> nix::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}
