//! The tokio runtime, and the limit of open file descriptors.

use std::io;
use std::os::unix::net::UnixStream;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use tracing::{info, warn};

use crate::exit::Failure;

/// Descriptors for everything but the connections of a server: 256 TLS handshakes, 64 connections of the
/// monitoring port, files and the API server.
const OTHER_DESCRIPTORS: usize = 384;
/// The number of connections with which a server starts even if the limit of descriptors is too low.
const FEWEST_CONNECTIONS: usize = 64;

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

/// Raises the soft limit of open file descriptors to the hard limit, because the soft limit of most
/// systems is 1024, and returns how many connections a server may have: `wanted`, or less if the limit
/// leaves fewer descriptors, so that clients cannot use up those for the health checks, files and the API
/// server. `wanted_by` says in a warning what the limit is too low for.
pub fn raise_descriptors(wanted: usize, wanted_by: &str) -> usize {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map(|()| hard));
    if let Err(error) = raised {
        warn!(%error, "file descriptor limit not raised");
    }
    let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return wanted };
    let connections = connections(wanted, limit);
    if connections < wanted {
        warn!(limit, connections, "file descriptor limit is lower than {wanted_by}; raise the hard limit");
    } else {
        info!(limit, "file descriptor limit set");
    }
    connections
}

/// Returns how many of `wanted` connections a limit of descriptors leaves.
fn connections(wanted: usize, limit: u64) -> usize {
    let left = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(OTHER_DESCRIPTORS);
    wanted.min(left.max(FEWEST_CONNECTIONS))
}

#[cfg(test)]
mod tests;
