//! kubelet's rule for redirects, as a function of the request, the answer and how many requests there were.
//!
//! Rules: `RedirectChecker` in `pkg/probe/http/http.go` of Kubernetes, and `Client.do` of Go's `net/http`.

use crate::ports::OwnPorts;
use crate::request::Request;
use crate::url::Url;

/// All requests of one probe, the first included.
const REQUESTS: u32 = 10;
/// Describe a body; Go's client drops them with it, once an answer was 301, 302 or 303.
const OF_A_BODY: [&str; 4] = ["content-encoding", "content-language", "content-location", "content-type"];

/// What an answer's status and `Location` mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// The answer is the last one: no redirect, one without `Location`, or one to another host.
    Last,
    /// Ask again, at the pod's address and the URL's port.
    Follow(Box<Request>),
    /// A failure: unreadable, one request too many, nothing that could be dialled, or a port of the proxy.
    Broken,
}

impl Redirect {
    /// Whether a status asks for a redirect at all, so that `Location` matters.
    pub fn is_asked_by(status: u16) -> bool {
        matches!(status, 301 | 302 | 303 | 307 | 308)
    }

    /// Decides what follows the answer to `request`, the `requests`-th of its probe. `pod_ip` is the address
    /// that is probed, without brackets.
    pub fn of(
        request: &Request,
        status: u16,
        location: Option<&[u8]>,
        requests: u32,
        pod_ip: &str,
        own_ports: &OwnPorts,
    ) -> Self {
        let location = location.unwrap_or(b"").trim_ascii();
        if !Self::is_asked_by(status) || location.is_empty() {
            return Self::Last;
        }
        let Some(reference) = Url::parse(location) else { return Self::Broken };
        let url = request.url.resolve(&reference);
        if url.opaque || url.hostname() != pod_ip.as_bytes() {
            return Self::Last;
        }
        let reachable = url.port().is_some_and(|port| port != 0 && !own_ports.contains(port));
        if requests >= REQUESTS || !reachable || !url.can_be_sent() {
            return Self::Broken;
        }
        Self::Follow(Box::new(follow(request, status, url, &reference)))
    }
}

fn follow(request: &Request, status: u16, url: Url, reference: &Url) -> Request {
    let mut headers = request.headers.clone();
    if matches!(status, 301..=303) {
        headers.retain(|(name, _)| !OF_A_BODY.contains(&name.as_str()));
    }
    let from_tls_to_plaintext = request.url.scheme == b"https" && url.scheme == b"http";
    let referer = (!is_declared(&headers, "referer") && !from_tls_to_plaintext).then(|| request.url.text());
    if referer.is_some() {
        headers.retain(|(name, _)| name != "referer");
    }
    // A declared `Host` outlives a relative redirect, unless it says no more than the URL.
    let kept = |host: &Vec<u8>| reference.scheme.is_empty() && *host != request.url.host;
    let host = request.host.clone().filter(kept);
    let authorization = url.user.as_deref().filter(|_| !is_declared(&headers, "authorization")).map(basic);
    Request { host, headers, user_agent: request.user_agent, referer, authorization, url }
}

/// Whether the first declared header of that name is more than empty; Go's client looks at no other.
fn is_declared(headers: &[(String, Vec<u8>)], name: &str) -> bool {
    headers.iter().find(|(other, _)| other == name).is_some_and(|(_, value)| !value.is_empty())
}

/// The value of `Authorization` for `name:password`.
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
