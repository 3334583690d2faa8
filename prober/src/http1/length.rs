//! How the end of a response's body is found, by the rules of Go's `readTransfer` and `fixLength`.

use probe::Reason;

use super::head::Head;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    Chunks,
    /// The body ends with the connection.
    Connection,
}

/// Returns how the end of the body after `head` is found.
pub(super) fn length(head: &Head) -> Result<Length, Reason> {
    let fields = &head.fields;
    let is_chunked = match fields.transfer_encodings.as_slice() {
        [] => false,
        _ if !head.version.has_transfer_codings() => false,
        [coding] if coding.eq_ignore_ascii_case(b"chunked") => true,
        _ => return Err(Reason::Protocol),
    };
    let declared = content_length(&fields.content_lengths)?;
    if is_chunked && fields.has_invalid_trailer {
        return Err(Reason::Protocol);
    }
    Ok(match head.status {
        101 if is_upgrade(head) => Length::Connection,
        100..=199 | 204 | 304 => Length::Bytes(0),
        _ if is_chunked => Length::Chunks,
        _ => declared.map_or(Length::Connection, Length::Bytes),
    })
}

/// Go accepts lines with equal values.
fn content_length(values: &[Vec<u8>]) -> Result<Option<u64>, Reason> {
    let Some((first, others)) = values.split_first() else { return Ok(None) };
    let first = first.trim_ascii();
    if others.iter().any(|other| other.trim_ascii() != first) || !first.iter().all(u8::is_ascii_digit) {
        return Err(Reason::Protocol);
    }
    let number: Option<i64> = std::str::from_utf8(first).ok().and_then(|text| text.parse().ok());
    number.map(|number| Some(number.unsigned_abs())).ok_or(Reason::Protocol)
}

/// True if the response switches protocols, so that Go's client hands out the connection as its body.
fn is_upgrade(head: &Head) -> bool {
    let upgrade = head.fields.upgrade.as_deref().unwrap_or_default();
    !upgrade.is_empty() && head.fields.names_upgrade
}

#[cfg(test)]
mod tests;
