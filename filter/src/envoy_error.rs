//! Decides whether a response was made by Envoy or by the application, and why Envoy made it.
//!
//! Sources: the attributes `response.code_details` (values in Envoy's
//! `StreamInfo::ResponseCodeDetails`) and `upstream.transport_failure_reason`. A callout has
//! neither; there the source is the body of Envoy's local reply.

use probe::Reason;

/// Returns the reason for which Envoy made the response; `None` if the application made it.
///
/// `details` is `response.code_details`, for example
/// `upstream_reset_before_response_started{connection_termination}`. `failure` is
/// `upstream.transport_failure_reason`, for example `delayed_connect_error:_Connection_refused`.
/// Both may be empty.
pub fn from_code_details(details: &[u8], failure: &[u8]) -> Option<Reason> {
    const BEFORE: &[u8] = b"upstream_reset_before_response_started{";
    // After an informational (1xx) response, Envoy regards the response as started.
    const AFTER: &[u8] = b"upstream_reset_after_response_started{";
    if details == b"via_upstream" {
        return None;
    }
    if contains(details, b"timeout") {
        return Some(Reason::Timeout);
    }
    if let Some(reset) = details.strip_prefix(BEFORE).or_else(|| details.strip_prefix(AFTER)) {
        return Some(from_reset_reason(reset, failure));
    }
    if details.starts_with(b"http1.") || details.starts_with(b"http2.") || contains(details, b"too_large") {
        return Some(Reason::Protocol);
    }
    if contains(details, b"overflow") {
        return Some(Reason::Overloaded);
    }
    Some(Reason::Configuration)
}

/// Returns the reason for which Envoy itself answered a callout, read from the body of its local
/// reply, for example `upstream connect error or disconnect/reset before headers. reset reason:
/// remote connection failure`. Returns `None` for other texts.
pub fn from_local_reply(text: &[u8]) -> Option<Reason> {
    const CONNECT: &[u8] = b"upstream connect error or disconnect/reset before headers";
    if text.starts_with(b"upstream request timeout") {
        return Some(Reason::Timeout);
    }
    if text.starts_with(b"no healthy upstream") || text.starts_with(b"no cluster") {
        return Some(Reason::Configuration);
    }
    let start = b"reset reason: ";
    let position = text.windows(start.len()).position(|window| window == start)?;
    let reset = text.get(position.checked_add(start.len())?..)?;
    contains(text, CONNECT).then(|| match from_reset_reason(reset, b"") {
        // The local reply of a callout does not distinguish a refused connection from an
        // unreachable address.
        Reason::Unreachable => Reason::Refused,
        reason => reason,
    })
}

/// Returns the reason for Envoy's reset reason, whose words are separated by spaces or underscores.
fn from_reset_reason(reset: &[u8], failure: &[u8]) -> Reason {
    let says = |word: &str| {
        let spaced = word.replace('_', " ");
        [reset, failure]
            .iter()
            .any(|text| contains(text, word.as_bytes()) || contains(text, spaced.as_bytes()))
    };
    if says("connection_failure") {
        return match () {
            () if says("TLS_error") => Reason::Tls,
            () if says("refused") => Reason::Refused,
            () if says("timed_out") => Reason::Timeout,
            // Only an established connection can be reset; before that, the kernel reports
            // "refused".
            () if says("reset_by_peer") => Reason::Closed,
            () => Reason::Unreachable,
        };
    }
    match () {
        () if says("connection_timeout") => Reason::Timeout,
        () if says("connection_termination") || says("remote_reset") || says("local_reset") => Reason::Closed,
        () if says("refused_stream") => Reason::Closed,
        () if says("protocol_error") => Reason::Protocol,
        () if says("overflow") => Reason::Overloaded,
        () => Reason::Configuration,
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests;
