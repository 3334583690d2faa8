//! URLs as kubelet's HTTP client parses, resolves and writes them.
//!
//! The rules are those of Go's `net/url` and not those of RFC 3986, because every difference would
//! change the request that the application receives. The functions work on bytes, because a
//! `Location` may hold any.

use crate::scheme::Scheme;

mod escape;

use escape::{FRAGMENT, PATH};

/// A URL. Path and fragment are kept percent-encoded, as they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The scheme in lower case; empty in a relative reference.
    pub scheme: Vec<u8>,
    /// True if the scheme is not followed by a slash (`mailto:x`). Such a URL cannot be requested.
    pub opaque: bool,
    /// The decoded `name:password` before the host; it contains the colon even if there is no
    /// password.
    pub user: Option<Vec<u8>>,
    /// Host and port as written, with an IPv6 address in brackets.
    pub host: Vec<u8>,
    /// The percent-encoded path; may be empty.
    pub path: Vec<u8>,
    /// The query without the `?`, not decoded; `Some` and empty for a bare `?`.
    pub query: Option<Vec<u8>>,
    /// The percent-encoded fragment; only a `Referer` contains it.
    pub fragment: Vec<u8>,
}

impl Url {
    /// Parses a reference; returns `None` where Go's `url.Parse` returns an error.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (text, fragment) = cut(text, b'#').unwrap_or((text, b""));
        if text.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
            return None;
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = match cut(rest, b'?') {
            Some((rest, query)) => (rest, Some(query.to_vec())),
            None => (rest, None),
        };
        let mut url = Self {
            scheme: scheme.to_ascii_lowercase(),
            opaque: false,
            user: None,
            host: Vec::new(),
            path: Vec::new(),
            query,
            fragment: escape::normal(fragment, FRAGMENT)?,
        };
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = !rest.is_empty();
                return Some(url);
            }
            let (segment, _) = cut(rest, b'/').unwrap_or((rest, b""));
            if segment.contains(&b':') {
                return None;
            }
        }
        let path = match rest.strip_prefix(b"//") {
            Some(authority) if !url.scheme.is_empty() || !authority.starts_with(b"/") => {
                let end = authority.iter().position(|byte| *byte == b'/').unwrap_or(authority.len());
                let (authority, path) = authority.split_at(end);
                (url.user, url.host) = parse_authority(&url.scheme, authority)?;
                path
            }
            _ => rest,
        };
        url.path = match path {
            // Go keeps a path of a single asterisk, encoded or not, as `*`.
            b"*" | b"%2A" => b"*".to_vec(),
            path => escape::normal(path, PATH)?,
        };
        Some(url)
    }

    /// Returns the URL of a probe with the declared path. A path that cannot be parsed is taken
    /// literally and encoded (`formatURL` in kubelet's `pkg/probe/http/request.go`).
    pub fn probe(scheme: Scheme, host: &str, declared: &str) -> Self {
        let literal = || Self {
            scheme: Vec::new(),
            opaque: false,
            user: None,
            host: Vec::new(),
            path: escape::encode(declared.as_bytes(), PATH),
            query: None,
            fragment: Vec::new(),
        };
        let mut url = Self::parse(declared.as_bytes()).unwrap_or_else(literal);
        url.scheme = scheme.word().as_bytes().to_vec();
        url.host = host.as_bytes().to_vec();
        if !url.path.is_empty() && !url.path.starts_with(b"/") {
            url.path.insert(0, b'/');
        }
        url
    }

    /// Resolves `reference` against `self`, as Go's `URL.ResolveReference` does.
    pub fn resolve(&self, reference: &Self) -> Self {
        let mut url = reference.clone();
        if url.scheme.is_empty() {
            url.scheme.clone_from(&self.scheme);
        }
        if !reference.scheme.is_empty() || !reference.host.is_empty() || reference.user.is_some() {
            url.path = resolve_path(&reference.path, b"");
            return url;
        }
        if reference.path.is_empty() && reference.query.is_none() {
            // A bare `?` of the base is not inherited.
            url.query = self.query.clone().filter(|query| !query.is_empty());
            if reference.fragment.is_empty() {
                url.fragment.clone_from(&self.fragment);
            }
        }
        url.host.clone_from(&self.host);
        url.user.clone_from(&self.user);
        url.path = resolve_path(&self.path, &reference.path);
        url
    }

    /// Returns the host without port and brackets.
    pub fn hostname(&self) -> &[u8] {
        let host = self.split_port().0;
        match host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")) {
            Some(host) => host,
            None => host,
        }
    }

    /// Returns the port to connect to; `None` if the scheme is neither http nor https, or the port
    /// is not a valid number.
    pub fn port(&self) -> Option<u16> {
        match (self.split_port().1, self.scheme.as_slice()) {
            (b"", b"http") => Some(80),
            (b"", b"https") => Some(443),
            (port, b"http" | b"https") => std::str::from_utf8(port).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// Returns the request target: the path, and the query if there is one.
    pub fn request_target(&self) -> Vec<u8> {
        let mut target = if self.path.is_empty() { b"/".to_vec() } else { self.path.clone() };
        if let Some(query) = &self.query {
            target.push(b'?');
            target.extend_from_slice(query);
        }
        target
    }

    /// Returns the whole URL as a `Referer` contains it.
    pub fn text(&self) -> Vec<u8> {
        let mut text = [self.scheme.as_slice(), b"://", &self.host, &self.path].concat();
        if let Some(query) = &self.query {
            text.push(b'?');
            text.extend_from_slice(query);
        }
        if !self.fragment.is_empty() {
            text.push(b'#');
            text.extend_from_slice(&self.fragment);
        }
        text
    }

    /// Returns true if Envoy can send the request that kubelet's client would send. It cannot send
    /// an opaque URL, or a query with an unencoded space, which would end the request target.
    pub fn is_sendable(&self) -> bool {
        let blank = self.query.as_deref().is_some_and(|query| query.contains(&b' '));
        !self.opaque && !blank
    }

    fn split_port(&self) -> (&[u8], &[u8]) {
        let colon = self.host.iter().rposition(|byte| *byte == b':');
        match colon.and_then(|colon| self.host.split_at_checked(colon)) {
            Some((host, port)) if is_optional_port(port) => (host, port.strip_prefix(b":").unwrap_or(port)),
            _ => (&self.host, b""),
        }
    }
}

/// Splits at the first `byte`, which is in neither part.
fn cut(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let (head, tail) = text.split_at_checked(text.iter().position(|other| *other == byte)?)?;
    Some((head, tail.get(1..)?))
}

/// Splits off the scheme, which may be empty. Returns `None` if the text starts with a colon.
fn scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return cut(text, b':'),
            _ => break,
        }
    }
    Some((b"", text))
}

/// Returns the user name and password, if any, and the host.
fn parse_authority(scheme: &[u8], authority: &[u8]) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
    let Some(at) = authority.iter().rposition(|byte| *byte == b'@') else {
        return Some((None, parse_host(scheme, authority)?));
    };
    let (user, host) = authority.split_at_checked(at)?;
    let host = parse_host(scheme, host.get(1..)?)?;
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:!$&'()*+,;=%@".contains(byte);
    if !user.iter().all(valid) {
        return None;
    }
    let mut decoded = escape::decode(user)?;
    if !user.contains(&b':') {
        decoded.push(b':');
    }
    Some((Some(decoded), host))
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Option<Vec<u8>> {
    match host.iter().rposition(|byte| *byte == b'[') {
        Some(0) => parse_literal(host),
        Some(_) => None,
        None => {
            let first = host.iter().position(|byte| *byte == b':');
            let last = host.iter().rposition(|byte| *byte == b':');
            // Schemes other than http and https may have several colons (lists of database hosts).
            let colon = if matches!(scheme, b"http" | b"https") { first } else { last };
            let port = colon.and_then(|colon| host.get(colon..)).unwrap_or(b"");
            if is_optional_port(port) { escape::decode_host(host) } else { None }
        }
    }
}

/// Parses an IPv6 address in brackets with an optional zone and port.
fn parse_literal(host: &[u8]) -> Option<Vec<u8>> {
    let close = host.iter().rposition(|byte| *byte == b']')?;
    let (literal, port) = (host.get(1..close)?, host.get(close.checked_add(1)?..)?);
    if !is_optional_port(port) {
        return None;
    }
    let zone = literal.windows(3).position(|window| window == b"%25");
    let (address, zone) = literal.split_at_checked(zone.unwrap_or(literal.len()))?;
    let address = escape::decode_host(address)?;
    let zone = escape::decode_zone(zone)?;
    std::str::from_utf8(&address).ok()?.parse::<std::net::Ipv6Addr>().ok()?;
    if zone == b"%" {
        return None;
    }
    Some([b"[".as_slice(), &address, &zone, b"]", port].concat())
}

/// Returns true if `port` is empty, or a colon followed by any number of digits.
fn is_optional_port(port: &[u8]) -> bool {
    port.strip_prefix(b":").is_none_or(|digits| digits.iter().all(u8::is_ascii_digit))
        && (port.is_empty() || port.starts_with(b":"))
}

/// Joins two encoded paths and removes dot segments, as Go's `resolvePath` does.
fn resolve_path(base: &[u8], reference: &[u8]) -> Vec<u8> {
    let full = match (base, reference) {
        (base, b"") => base.to_vec(),
        (_, [b'/', ..]) => reference.to_vec(),
        (base, reference) => {
            let end = base.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash.saturating_add(1));
            [base.get(..end).unwrap_or(b""), reference].concat()
        }
    };
    if full.is_empty() {
        return full;
    }
    let mut out = b"/".to_vec();
    let (mut first, mut dots) = (true, false);
    for element in full.split(|byte| *byte == b'/') {
        dots = matches!(element, b"." | b"..");
        match element {
            b"." => first = false,
            b".." => {
                let slash = out.iter().skip(1).rposition(|byte| *byte == b'/');
                out.truncate(slash.map_or(1, |slash| slash.saturating_add(1)));
                first = out.len() == 1;
            }
            element => {
                if !first {
                    out.push(b'/');
                }
                out.extend_from_slice(element);
                first = false;
            }
        }
    }
    if dots {
        out.push(b'/');
    }
    match out.strip_prefix(b"//") {
        Some(_) => out.split_off(1),
        None => out,
    }
}

#[cfg(test)]
mod tests;
