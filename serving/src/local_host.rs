//! Whether a request names this machine as its host. A browser sends the name that it resolved, so a
//! page of another site whose name resolves to a loopback address is recognized.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::Authority;

/// Returns true if every `Host` is `localhost` or a loopback address, with or without a port.
pub fn has_local_host(headers: &HeaderMap) -> bool {
    let is_local = |value: &HeaderValue| value.to_str().is_ok_and(is_local_host);
    headers.get_all(HOST).iter().all(is_local)
}

fn is_local_host(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    !authority.as_str().contains('@') && (name.eq_ignore_ascii_case("localhost") || is_loopback)
}

#[cfg(test)]
mod tests;
