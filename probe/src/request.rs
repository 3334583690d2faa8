//! The request that kubelet would send for an `httpGet` probe.
//!
//! Rules: `pkg/probe/http/request.go` of Kubernetes for path and default headers, Go's `net/http` for what its
//! client leaves out or adds.

use crate::prober::{Header, HttpGet, Scheme};
use crate::url::Url;

/// Written by Go's client itself or not at all, whatever was declared.
const NOT_SENT: [&str; 3] = ["content-length", "transfer-encoding", "trailer"];
/// Forbidden in HTTP/2; over TLS the version is chosen after the request was written.
pub(crate) const CONNECTION: [&str; 4] = ["connection", "keep-alive", "upgrade", "proxy-connection"];

/// Who names the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAgent {
    /// kubelet's own `kube-probe/<major>.<minor>`, which the caller sent to us.
    Caller,
    /// The Pod declares one, which is among the headers, or declares an empty one, which is none.
    Declared,
}

/// One request of a probe: the first, or one that follows a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked, and of whom.
    pub url: Url,
    /// The declared `Host`; otherwise the URL's host is sent.
    pub host: Option<Vec<u8>>,
    /// Everything else but `User-Agent` where the caller names it: lower-case names, in the order of sending.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Where the `User-Agent` comes from.
    pub user_agent: UserAgent,
    /// The `Referer` of a request that follows a redirect.
    pub referer: Option<Vec<u8>>,
}

impl Request {
    /// The first request of a probe of `authority`, which is `address:port`, the address in brackets for IPv6.
    pub fn new(probe: &HttpGet, authority: &str) -> Self {
        let declared = |name: &str| probe.headers.iter().find(|header| header.is(name)).map(Header::sent);
        let user_agent = declared("user-agent");
        let accept = declared("accept");
        let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
        match user_agent {
            Some(value) if !value.is_empty() => headers.push(("user-agent".into(), value.into())),
            _ => {}
        }
        if accept.is_none() {
            headers.push(("accept".into(), b"*/*".to_vec()));
        }
        for header in &probe.headers {
            let name = header.name.to_ascii_lowercase();
            let sent = match name.as_str() {
                "host" | "user-agent" => false,
                "accept" => accept != Some(""),
                name => {
                    let dropped = probe.scheme == Scheme::Https && CONNECTION.contains(&name);
                    !dropped && !NOT_SENT.contains(&name)
                }
            };
            if sent {
                headers.push((name, header.sent().into()));
            }
        }
        if probe.scheme == Scheme::Http && !closes(&headers) {
            headers.push(("connection".into(), b"close".to_vec()));
        }
        Self {
            url: Url::probe(probe.scheme, authority, &probe.path),
            host: declared("host").filter(|host| !host.is_empty()).map(Into::into),
            headers,
            user_agent: if user_agent.is_some() { UserAgent::Declared } else { UserAgent::Caller },
            referer: None,
        }
    }

    /// What stands in `Host`.
    pub fn authority(&self) -> &[u8] {
        self.host.as_deref().unwrap_or(&self.url.host)
    }

    /// Whether the Pod declares this header (lower case), so that its value has to arrive.
    pub fn declares(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other == name)
    }
}

/// Whether a declared `Connection` says `close` already.
fn closes(headers: &[(String, Vec<u8>)]) -> bool {
    let close = |token: &[u8]| token.trim_ascii().eq_ignore_ascii_case(b"close");
    headers.iter().any(|(name, value)| name == "connection" && value.split(|byte| *byte == b',').any(close))
}

#[cfg(test)]
mod tests;
