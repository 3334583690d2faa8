//! The request that kubelet would send for an `httpGet` probe.
//!
//! Sources: `pkg/probe/http/request.go` of Kubernetes for the path and the default headers, and
//! Go's `net/http` for the headers that its client omits or adds.

use crate::prober::HttpGet;
use crate::url::Url;

/// Declared headers that Go's client ignores over HTTP/1.1: it writes these itself or not at all.
const IGNORED_HEADERS: [&str; 3] = ["content-length", "transfer-encoding", "trailer"];
/// Headers that HTTP/2 forbids. Over TLS, the HTTP version is negotiated after the request was
/// written, so they are never sent there.
const CONNECTION_HEADERS: [&str; 4] = ["connection", "keep-alive", "upgrade", "proxy-connection"];

/// The source of the `User-Agent` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAgent {
    /// kubelet's own `kube-probe/<major>.<minor>`, taken from its request to the proxy.
    Kubelet,
    /// The Pod declares one in `httpHeaders`. If the declared value is empty, none is sent.
    Declared,
}

/// Whether the connection ends after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It ends, as kubelet's connections do.
    Close,
    /// A later probe may use it.
    KeepAlive,
}

/// One request of a probe: the first one, or one that follows a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The URL of the request.
    pub url: Url,
    /// The declared `Host`; if `None`, the host of the URL is sent.
    pub host: Option<Vec<u8>>,
    /// All other headers, except `User-Agent` for [`UserAgent::Kubelet`]: lower-case names, in the
    /// order in which they are sent. Headers about the connection depend on the scheme: see
    /// [`Request::sent_headers`].
    pub headers: Vec<(String, Vec<u8>)>,
    /// The source of the `User-Agent`.
    pub user_agent: UserAgent,
    /// The declared headers that Go's client does not send over HTTP/1.1, with names in lower case. Over HTTP/2
    /// it sends a `Trailer`, and refuses requests with most values of `Transfer-Encoding`.
    pub ignored: Vec<(String, Vec<u8>)>,
    /// The `Referer` of a request that follows a redirect.
    pub referer: Option<Vec<u8>>,
    /// The `Authorization` of a request that follows a redirect to a URL with a user name.
    pub authorization: Option<Vec<u8>>,
}

impl Request {
    /// Returns the first request of a probe. `authority` is `address:port`, with the address in
    /// brackets for IPv6.
    pub fn new(probe: &HttpGet, authority: &str) -> Self {
        let declared = |name: &str| probe.headers.iter().find(|header| header.has_name(name));
        let user_agent = declared("user-agent");
        let accept = declared("accept");
        let (mut headers, mut ignored) = (Vec::<(String, Vec<u8>)>::new(), Vec::new());
        if let Some(header) = user_agent.filter(|header| !header.value.is_empty()) {
            headers.push(("user-agent".into(), header.trimmed_value().into()));
        }
        if accept.is_none() {
            headers.push(("accept".into(), b"*/*".to_vec()));
        }
        for header in &probe.headers {
            let name = header.name.to_ascii_lowercase();
            let value = header.trimmed_value().into();
            match name.as_str() {
                "host" | "user-agent" => {}
                "accept" if accept.is_none_or(|first| first.value.is_empty()) => {}
                ignores if IGNORED_HEADERS.contains(&ignores) => ignored.push((name, value)),
                _ => headers.push((name, value)),
            }
        }
        Self {
            url: Url::probe(probe.scheme, authority, &probe.path),
            host: declared("host")
                .filter(|host| !host.value.is_empty())
                .map(|host| host.trimmed_value().into()),
            headers,
            user_agent: if user_agent.is_some() { UserAgent::Declared } else { UserAgent::Kubelet },
            ignored,
            referer: None,
            authorization: None,
        }
    }

    /// Returns the value of the `Host` header.
    pub fn authority(&self) -> &[u8] {
        self.host.as_deref().unwrap_or(&self.url.host)
    }

    /// Returns the names and values of the headers as they are sent, except a `User-Agent` of the
    /// caller, `Referer` and `Authorization`. Over TLS, headers about the connection are omitted.
    /// In plaintext, `Connection: close` is added to [`Connection::Close`], unless the Pod declares a
    /// protocol upgrade.
    pub fn sent_headers(&self, connection: Connection) -> impl Iterator<Item = (&[u8], &[u8])> {
        let tls = self.url.scheme == b"https";
        let adds = connection == Connection::Close && !tls && self.adds_close();
        let close = adds.then_some((b"connection".as_slice(), b"close".as_slice()));
        let sent = self
            .headers
            .iter()
            .filter(move |(name, _)| !(tls && CONNECTION_HEADERS.contains(&name.as_str())));
        sent.map(|(name, value)| (name.as_bytes(), value.as_slice())).chain(close)
    }

    /// Returns true if Go's client adds `Connection: close`, which it does unless the Pod declares it, or a
    /// protocol upgrade.
    pub fn adds_close(&self) -> bool {
        !closes(&self.headers) && !upgrades(&self.headers)
    }

    /// Returns true if the Pod declares a non-empty value for this header (lower case), so that it
    /// has to be sent.
    pub fn declares(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, value)| other == name && !value.is_empty())
    }
}

/// Returns true if the first declared `Connection` contains `close`. Go's client ignores the
/// others.
fn closes(headers: &[(String, Vec<u8>)]) -> bool {
    let first = headers.iter().find(|(name, _)| name == "connection");
    first.is_some_and(|(_, value)| has_token(value, b"close"))
}

/// Returns true if the headers request a protocol upgrade. Then Go's client adds no `close`
/// (`isProtocolSwitchHeader` of `net/http`).
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
