//! kubelet's rules for following redirects.
//!
//! Sources: `RedirectChecker` in `pkg/probe/http/http.go` of Kubernetes, and `Client.do` of Go's
//! `net/http`.

use crate::ports::ProxyPorts;
use crate::request::Request;
use crate::url::Url;

/// The maximum number of requests of one probe, including the first one.
const MAX_REQUESTS: u32 = 10;
/// Headers that describe a request body. Go's client drops them together with the body after a 301,
/// 302 or 303.
const BODY_HEADERS: [&str; 4] = ["content-encoding", "content-language", "content-location", "content-type"];

/// The meaning of a response's status and `Location`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// The response is final: no redirect, no `Location`, or a redirect to another host.
    Final,
    /// The probe sends a further request, to the Pod's address and the port of the URL.
    Follow(Box<Request>),
    /// The probe fails: the `Location` is invalid, cannot be requested or names a port of the
    /// proxy, or there were too many requests.
    Invalid,
}

impl Redirect {
    /// Returns true if the status is a redirect, so that `Location` matters.
    pub fn is_redirect_status(status: u16) -> bool {
        matches!(status, 301 | 302 | 303 | 307 | 308)
    }

    /// Decides what follows the response to `request`. `requests` is the number of requests of the
    /// probe so far, including `request`. `pod_ip` is the probed address without brackets.
    pub fn decide(
        request: &Request,
        status: u16,
        location: Option<&[u8]>,
        requests: u32,
        pod_ip: &str,
        proxy_ports: &ProxyPorts,
    ) -> Self {
        let location = location.unwrap_or(b"").trim_ascii();
        if !Self::is_redirect_status(status) || location.is_empty() {
            return Self::Final;
        }
        let Some(reference) = Url::parse(location) else { return Self::Invalid };
        let url = request.url.resolve(&reference);
        if url.opaque || url.hostname() != pod_ip.as_bytes() {
            return Self::Final;
        }
        let reachable = url.port().is_some_and(|port| port != 0 && !proxy_ports.contains(port));
        if requests >= MAX_REQUESTS || !reachable {
            return Self::Invalid;
        }
        Self::Follow(Box::new(follow(request, status, url, &reference)))
    }
}

fn follow(request: &Request, status: u16, url: Url, reference: &Url) -> Request {
    let mut headers = request.headers.clone();
    if matches!(status, 301..=303) {
        headers.retain(|(name, _)| !BODY_HEADERS.contains(&name.as_str()));
    }
    let from_tls_to_plaintext = request.url.scheme == b"https" && url.scheme == b"http";
    let referer = (!is_declared(&headers, "referer") && !from_tls_to_plaintext).then(|| request.url.text());
    if referer.is_some() {
        headers.retain(|(name, _)| name != "referer");
    }
    // A declared `Host` is kept for a relative redirect, unless it equals the host of the URL.
    let kept = |host: &Vec<u8>| reference.scheme.is_empty() && *host != request.url.host;
    let host = request.host.clone().filter(kept);
    let authorization = url.user.as_deref().filter(|_| !is_declared(&headers, "authorization")).map(basic);
    Request { url, host, headers, referer, authorization, ..request.clone() }
}

/// Returns true if the first declared header of that name has a value. Go's client ignores the
/// others.
fn is_declared(headers: &[(String, Vec<u8>)], name: &str) -> bool {
    headers.iter().find(|(other, _)| other == name).is_some_and(|(_, value)| !value.is_empty())
}

/// Returns the value of `Authorization` for the credentials `name:password`.
fn basic(credentials: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = b"Basic ".to_vec();
    for chunk in credentials.chunks(3) {
        let bits =
            (0..3).fold(0u32, |bits, index| bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0)));
        for (index, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = usize::try_from(bits >> shift & 63).ok().and_then(|digit| DIGITS.get(digit));
            value.push(digit.copied().filter(|_| index <= chunk.len()).unwrap_or(b'='));
        }
    }
    value
}

#[cfg(test)]
mod tests;
