//! The tokio runtime of the commands. It is single-threaded, which is sufficient for the agent.

use std::io;
use std::os::unix::net::UnixStream;

use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

pub fn new() -> Result<Runtime, Failure> {
    room()
        .and_then(|()| Builder::new_current_thread().enable_all().build())
        .map_err(|error| Failure::Machine(format!("cannot start: {error}")))
}

/// Runs a command to completion. A hanging name lookup does not delay the return.
pub fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = new()?;
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

#[cfg(test)]
mod tests;
