//! Who made an answer, and why there is none of the application: read from Envoy's own words.
//!
//! Sources: `response.code_details` and `upstream.transport_failure_reason`, in the words of Envoy's
//! `StreamInfo::ResponseCodeDetails`; for callouts, which have neither, the text of Envoy's local reply.

use probe::Reason;

/// Why Envoy answered in the application's place; `None` when the application answered.
///
/// `details` is for example `upstream_reset_before_response_started{connection_termination}`, `failure` for
/// example `delayed_connect_error:_Connection_refused`; both may be empty.
pub fn of_details(details: &[u8], failure: &[u8]) -> Option<Reason> {
    const BEFORE: &[u8] = b"upstream_reset_before_response_started{";
    // After an informational answer the final one counts as started.
    const AFTER: &[u8] = b"upstream_reset_after_response_started{";
    if details == b"via_upstream" {
        return None;
    }
    if contains(details, b"timeout") {
        return Some(Reason::Timeout);
    }
    if let Some(reset) = details.strip_prefix(BEFORE).or_else(|| details.strip_prefix(AFTER)) {
        return Some(of_reset(reset, failure));
    }
    if details.starts_with(b"http1.") || details.starts_with(b"http2.") || contains(details, b"too_large") {
        return Some(Reason::Protocol);
    }
    if contains(details, b"overflow") {
        return Some(Reason::Overloaded);
    }
    Some(Reason::Configuration)
}

/// Why the host did not do what a probe needs, by its status. A call that fails at once found every connection taken;
/// anything else that is refused is missing.
pub fn of_refused_call(status: u32) -> Reason {
    const INTERNAL_FAILURE: u32 = 10;
    if status == INTERNAL_FAILURE { Reason::Overloaded } else { Reason::Configuration }
}

/// Why a callout was answered by Envoy itself, from the text of the answer, for example `upstream connect error or
/// disconnect/reset before headers. reset reason: remote connection failure`; `None` for other texts.
pub fn of_text(text: &[u8]) -> Option<Reason> {
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
    contains(text, CONNECT).then(|| match of_reset(reset, b"") {
        // A callout's text does not tell a refused connection from an unreachable address.
        Reason::Unreachable => Reason::Refused,
        reason => reason,
    })
}

/// Envoy's reset reason, in words joined by blanks or underscores.
fn of_reset(reset: &[u8], failure: &[u8]) -> Reason {
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
            // Only a connection that stood can be reset; before, the kernel calls it refused.
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
