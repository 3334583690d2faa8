//! Creates the tokio runtime and raises the file descriptor limit.

use std::io;
use std::os::unix::net::UnixStream;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

/// Creates a runtime with this number of threads; 1 means the calling thread only.
pub fn new(threads: usize) -> Result<Runtime, Failure> {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    room()
        .and_then(|()| builder.worker_threads(threads).enable_all().build())
        .map_err(|error| Failure::Machine(format!("cannot start: {error}")))
}

/// Checks that file descriptors are available: tokio panics if it cannot create the socket pair
/// that it uses for signals.
fn room() -> io::Result<()> {
    let _pairs = (UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?);
    Ok(())
}

/// Raises the soft limit of open file descriptors to the hard limit and returns it.
///
/// # Errors
/// Returns the error of the system call; the limit is unchanged in this case.
pub fn raise_descriptors() -> nix::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}
