//! Whether a program on this machine sent a request, and not a proxy, nor a browser for a page of another
//! site. A port that is only open to this machine is open to every page that a browser on it shows.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{FORWARDED, HOST, HeaderValue, ORIGIN, VIA};
use hyper::http::uri::Authority;

/// Header of a request that changes something. A browser sends it to another origin only if a preflight
/// request allows it, and none does.
pub const CHANGE: &str = "x-app-health-change";

/// Returns true if the headers show neither a proxy in between, nor a page of another site. A proxy adds
/// forwarding headers. A browser adds `Origin` to a request that can change something, and sends the name
/// that it resolved as the host.
pub fn is_direct(headers: &HeaderMap) -> bool {
    let is_trace = |name: &str| {
        name.starts_with("x-envoy-")
            || [FORWARDED.as_str(), VIA.as_str(), ORIGIN.as_str(), "x-forwarded-for"].contains(&name)
    };
    !headers.keys().any(|name| is_trace(name.as_str())) && has_local_host(headers)
}

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
