//! Redirects of a metrics target, which are followed on the target's own port only.

use hyper::header::{HeaderValue, LOCATION};
use hyper::{HeaderMap, StatusCode};
use probe::url::Url;

use address::HttpUrl;
use address::RequestFailure;

/// Maximum number of requests of a scrape, including the first one, as in Go's client.
pub(super) const MAX_REQUESTS: u32 = 10;
/// Names of this host. The agent sends the first one as `Host`.
const THIS_HOST: [&[u8]; 3] = [b"localhost", b"127.0.0.1", b"::1"];

/// Returns the path and query that follow the response to `url`, or `None` if it is no redirect. The
/// error means that the redirect leads to another host or port, or cannot be requested.
pub(super) fn next(
    url: &HttpUrl,
    port: u16,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<String>, RequestFailure> {
    if !probe::Redirect::is_redirect_status(status.as_u16()) {
        return Ok(None);
    }
    let location = headers.get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
    target(url, port, location.trim_ascii()).map(Some).ok_or(RequestFailure::BadRedirect)
}

fn target(url: &HttpUrl, port: u16, location: &[u8]) -> Option<String> {
    if location.is_empty() {
        return None;
    }
    let base = Url::parse(format!("http://{}{}", url.authority, url.path).as_bytes())?;
    let next = base.resolve(&Url::parse(location)?);
    let is_here = THIS_HOST.iter().any(|name| name.eq_ignore_ascii_case(next.hostname()));
    let is_same = next.scheme == b"http" && is_here && next.port() == Some(port);
    if !is_same || !next.is_sendable() {
        return None;
    }
    let path = String::from_utf8(next.request_target()).ok()?;
    path.parse::<hyper::Uri>()
        .is_ok_and(|uri| path.starts_with('/') && uri.authority().is_none())
        .then_some(path)
}

#[cfg(test)]
mod tests;
