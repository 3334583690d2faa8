//! HTTP requests from the node to a Pod.

use std::net::{IpAddr, SocketAddr};

use kit::caller::{self, Answer};
use serde_json::Value;

/// Returns the address of a port of a Pod.
///
/// # Panics
/// If it has no address yet.
pub fn address(pod: &Value, port: u16) -> SocketAddr {
    let ip = pod["status"]["podIP"].as_str().expect("an address");
    SocketAddr::new(ip.parse::<IpAddr>().expect("an address"), port)
}

/// Requests a path in plaintext from the node. The status is 0 without an HTTP response.
///
/// # Panics
/// If there is no response in time.
pub fn http_get(address: SocketAddr, path: &str) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(caller::get(address, path, &[("Connection", "close")]))
}
