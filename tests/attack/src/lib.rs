//! Hostile clients against the shipped webhook, discovery and sidecar, and honest clients beside them,
//! whose verdicts must not change. Everything is local, and bounded in count and time.

pub mod attacks;
pub mod command;
pub mod container;
pub mod cost;
pub mod honest;
pub mod hostile;
pub mod http2;
pub mod measurement;
pub mod network;
pub mod newcomer;
pub mod program;
pub mod report;
pub mod request;
pub mod resources;
pub mod soak;
pub mod webhook;

use std::net::IpAddr;

use kit::net;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files: each connection of a hostile client needs a descriptor.
///
/// # Errors
/// The error of the kernel.
pub fn raise_descriptor_limit() -> Result<(), String> {
    let limits = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    setrlimit(Resource::RLIMIT_NOFILE, limits.1, limits.1).map_err(|error| error.to_string())
}

/// Returns this many loopback addresses, which no other process uses.
fn addresses(count: u32) -> Vec<IpAddr> {
    (0..count).map(|_| net::loopback()).collect()
}
