//! The tokio runtime, and the limit of open file descriptors.

use std::io;
use std::os::unix::net::UnixStream;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

/// Builds a runtime with I/O and time. The builder says whether it has threads of its own.
pub fn build(builder: &mut Builder) -> Result<Runtime, Failure> {
    room()
        .and_then(|()| builder.enable_all().build())
        .map_err(|error| Failure::Os(format!("cannot start: {error}")))
}

/// Runs a command to completion. Blocking tasks, such as a hanging name lookup, do not delay the
/// return.
pub fn block_on<T>(
    builder: &mut Builder,
    command: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = build(builder)?;
    let ended = runtime.block_on(command);
    runtime.shutdown_background();
    ended
}

/// Checks that enough file descriptors are free: tokio panics if it cannot create the socket pair
/// that it needs for signals.
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

#[cfg(test)]
mod tests;
