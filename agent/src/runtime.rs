//! The runtime that everything here runs on. One thread is enough for what the agent does.

use std::io;
use std::os::unix::net::UnixStream;

use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

/// Makes one.
pub fn new() -> Result<Runtime, Failure> {
    room()
        .and_then(|()| Builder::new_current_thread().enable_all().build())
        .map_err(|error| Failure::Machine(format!("cannot start: {error}")))
}

/// Runs a command to its end, which a resolver that hangs does not delay.
pub fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = new()?;
    let ended = runtime.block_on(command);
    runtime.shutdown_background();
    ended
}

/// Whether there are descriptors for it: where they end with the pair of sockets that tokio makes for signals, it panics.
fn room() -> io::Result<()> {
    let _pairs = (UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?);
    Ok(())
}

#[cfg(test)]
mod tests;
