//! A request as Go's client writes it: `Host` and `User-Agent`, then all other headers in the order of
//! their names, in Go's canonical case, and `Connection: close` at the end.

use probe::{Request, UserAgent};

/// Returns the bytes of a request. `user_agent` counts if the Pod declares none.
pub(super) fn bytes(request: &Request, user_agent: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    for part in [b"GET ", request.url.request_target().as_slice(), b" HTTP/1.1\r\n"] {
        out.extend_from_slice(part);
    }
    header(&mut out, b"Host", request.authority());
    let declared = request.headers.iter().find(|(name, _)| name == "user-agent");
    match (request.user_agent, declared) {
        (UserAgent::Kubelet, _) => header(&mut out, b"User-Agent", user_agent),
        (UserAgent::Declared, Some((_, value))) => header(&mut out, b"User-Agent", value),
        (UserAgent::Declared, None) => {}
    }
    let declared = request.headers.iter().filter(|(name, _)| name != "user-agent");
    let declared = declared.map(|(name, value)| (name.as_bytes(), value.as_slice()));
    let referer = request.referer.as_deref().map(|value| (b"referer".as_slice(), value));
    let authorization = request.authorization.as_deref().map(|value| (b"authorization".as_slice(), value));
    let headers = declared.chain(referer).chain(authorization);
    let mut headers: Vec<_> = headers.map(|(name, value)| (canonical(name), value)).collect();
    // A stable sort: lines of one name stay in their order.
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, value) in headers {
        header(&mut out, &name, value);
    }
    if request.adds_close() {
        header(&mut out, b"Connection", b"close");
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Returns the name in Go's canonical case: capitals at the begin and after each hyphen.
fn canonical(name: &[u8]) -> Vec<u8> {
    let mut is_first = true;
    let letter = |byte: &u8| {
        let letter = if is_first { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
        is_first = *byte == b'-';
        letter
    };
    name.iter().map(letter).collect()
}

#[cfg(test)]
mod tests;
