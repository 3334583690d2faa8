//! The request that kubelet would send for an `httpGet` probe.
//!
//! Rules: `pkg/probe/http/request.go` of Kubernetes for path and default headers, Go's `net/http` for what its
//! client leaves out or adds.

use crate::prober::HttpGet;
use crate::url::Url;

/// Written by Go's client itself or not at all, whatever was declared.
const NOT_SENT: [&str; 3] = ["content-length", "transfer-encoding", "trailer"];
/// Forbidden in HTTP/2; over TLS the version is chosen after the request was written.
const CONNECTION: [&str; 4] = ["connection", "keep-alive", "upgrade", "proxy-connection"];

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
    /// Everything else but `User-Agent` where the caller names it: lower-case names, in the order of sending. What
    /// of it concerns the connection depends on the scheme: see [`Request::sent_headers`].
    pub headers: Vec<(String, Vec<u8>)>,
    /// Where the `User-Agent` comes from.
    pub user_agent: UserAgent,
    /// The `Referer` of a request that follows a redirect.
    pub referer: Option<Vec<u8>>,
    /// The `Authorization` that a redirect's URL gives by a user name.
    pub authorization: Option<Vec<u8>>,
}

impl Request {
    /// The first request of a probe of `authority`, which is `address:port`, the address in brackets for IPv6.
    pub fn new(probe: &HttpGet, authority: &str) -> Self {
        let declared = |name: &str| probe.headers.iter().find(|header| header.is(name));
        let user_agent = declared("user-agent");
        let accept = declared("accept");
        let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
        if let Some(header) = user_agent.filter(|header| !header.value.is_empty()) {
            headers.push(("user-agent".into(), header.sent().into()));
        }
        if accept.is_none() {
            headers.push(("accept".into(), b"*/*".to_vec()));
        }
        for header in &probe.headers {
            let name = header.name.to_ascii_lowercase();
            let sent = match name.as_str() {
                "host" | "user-agent" => false,
                "accept" => accept.is_some_and(|first| !first.value.is_empty()),
                name => !NOT_SENT.contains(&name),
            };
            if sent {
                headers.push((name, header.sent().into()));
            }
        }
        Self {
            url: Url::probe(probe.scheme, authority, &probe.path),
            host: declared("host").filter(|host| !host.value.is_empty()).map(|host| host.sent().into()),
            headers,
            user_agent: if user_agent.is_some() { UserAgent::Declared } else { UserAgent::Caller },
            referer: None,
            authorization: None,
        }
    }

    /// What stands in `Host`.
    pub fn authority(&self) -> &[u8] {
        self.host.as_deref().unwrap_or(&self.url.host)
    }

    /// Name and value of each header as it is sent, but for user agent, `Referer` and `Authorization` of a redirect:
    /// nothing about the connection over TLS, and in plaintext `Connection: close`, unless it asks for another protocol.
    pub fn sent_headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let tls = self.url.scheme == b"https";
        let adds = !tls && !closes(&self.headers) && !upgrades(&self.headers);
        let close = adds.then_some((b"connection".as_slice(), b"close".as_slice()));
        let sent = self.headers.iter().filter(move |(name, _)| !(tls && CONNECTION.contains(&name.as_str())));
        sent.map(|(name, value)| (name.as_bytes(), value.as_slice())).chain(close)
    }

    /// Whether the Pod declares a value for this header (lower case), so that it has to arrive.
    pub fn declares(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, value)| other == name && !value.is_empty())
    }
}

/// Whether the first declared `Connection` says `close` already; Go's client looks at no other.
fn closes(headers: &[(String, Vec<u8>)]) -> bool {
    let first = headers.iter().find(|(name, _)| name == "connection");
    first.is_some_and(|(_, value)| has_token(value, b"close"))
}

/// Whether another protocol is asked for: then Go's client adds no `close` (`isProtocolSwitchHeader` of net/http).
fn upgrades(headers: &[(String, Vec<u8>)]) -> bool {
    let first = headers.iter().find(|(name, _)| name == "upgrade");
    let mut connections = headers.iter().filter(|(name, _)| name == "connection");
    first.is_some_and(|(_, value)| !value.is_empty())
        && connections.any(|(_, value)| has_token(value, b"upgrade"))
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|byte| b", \t".contains(byte)).any(|found| found.eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests;
