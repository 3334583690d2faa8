//! What the status pages of both binaries share: the response with its security headers, tables of
//! text in HTML, and streams of server-sent events.

mod events;
mod html;
mod table;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};

use crate::http_server::{Body, Response};
pub use events::{EventSource, EventStreams, Events, StreamPermit, event};
pub use html::{escape, render};
pub use table::{Cell, Results, Table, Tone};

/// Builds the response with a page. `policy` is its Content-Security-Policy.
///
/// # Panics
/// If `policy` is no header value.
pub fn response(page: impl Into<Bytes>, policy: &'static str) -> Response {
    let mut response = Response::new(Body::from(page.into()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    set_common(headers);
    response
}

/// Sets the headers that page and events have in common.
fn set_common(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Returns false if a browser sent the request for a page of another site.
pub fn is_same_origin(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_none_or(|site| site == "same-origin" || site == "none")
}

/// Creates a response whose status is 503, for a limit of event streams.
pub fn too_many_streams() -> Response {
    crate::http_server::text(
        StatusCode::SERVICE_UNAVAILABLE,
        "too many pages are open: close one of them, or reload this one later\n",
    )
}

#[cfg(test)]
mod tests;
