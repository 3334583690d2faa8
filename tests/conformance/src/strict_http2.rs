//! Checks whether the frames of an HTTP/2 response conform to RFC 9113, as far as a script can
//! violate it.

use super::bytes::Bytes;
use super::case::Step;

/// Headers that HTTP/2 forbids (RFC 9113, section 8.2.2).
const FORBIDDEN: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// Returns whether a step sends or reads HTTP/2 frames.
pub fn is_frame(step: &Step) -> bool {
    matches!(
        step,
        Step::Settings(_)
            | Step::Request
            | Step::Headers { .. }
            | Step::Data { .. }
            | Step::ResetStream(_)
            | Step::GoAway { .. }
            | Step::Frame { .. }
    )
}

/// Returns whether the response is complete.
pub fn ends(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Headers { end: true, .. } | Step::Data { end: true, .. }))
}

/// Returns whether everything that is sent is valid, complete or not.
pub fn is_valid(steps: &[Step]) -> bool {
    let (mut answered, mut ended) = (false, false);
    let (mut declared, mut sent) = (None, 0);
    for step in steps {
        match step {
            // After the end of its stream, an RST_STREAM without an error is allowed.
            Step::Headers { .. } | Step::Data { .. } if ended => return false,
            Step::Headers { fields, end } => {
                if !fields_are_valid(fields, answered) {
                    return false;
                }
                let status = fields.first().map(|(_, value)| value.0.clone()).unwrap_or_default();
                let interim = !answered && status.starts_with(b"1");
                if (answered && !*end) || (interim && *end) {
                    return false;
                }
                if !answered && !interim {
                    answered = true;
                    declared = length(fields);
                    if *end && declared.is_some_and(|length| length != 0) {
                        return false;
                    }
                    if !*end && (status == b"204" || status == b"304") {
                        return false;
                    }
                }
                ended |= *end;
            }
            Step::Data { bytes, end } => {
                sent += bytes.0.len();
                if !answered || declared.is_some_and(|length| sent > length) {
                    return false;
                }
                ended |= *end;
            }
            Step::Frame { .. } => return false,
            Step::Settings(pairs) if !pairs.is_empty() => return false,
            _ => {}
        }
    }
    !ended || declared.is_none_or(|length| sent == length)
}

fn fields_are_valid(fields: &[(Bytes, Bytes)], trailers: bool) -> bool {
    let fields = match fields {
        _ if trailers => fields,
        [(name, value), rest @ ..] if name.0 == b":status" => {
            let status = std::str::from_utf8(&value.0).ok().and_then(|text| text.parse::<u16>().ok());
            // HTTP/2 has no status 101.
            if !status.is_some_and(|status| (100..600).contains(&status) && status != 101) {
                return false;
            }
            rest
        }
        _ => return false,
    };
    let mut singles: Vec<&[u8]> = Vec::new();
    fields.iter().all(|(name, value)| {
        let name = name.0.as_slice();
        let token = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(byte);
        let single = matches!(
            name,
            b"location"
                | b"content-length"
                | b"content-type"
                | b"grpc-status"
                | b"grpc-message"
                | b"grpc-encoding"
        );
        let twice = single && singles.contains(&name);
        singles.push(name);
        let text = |byte: &u8| (b' '..0x7f).contains(byte) || *byte >= 0x80;
        !name.is_empty()
            && name.iter().all(token)
            && value.0.iter().all(text)
            && value.0.trim_ascii().len() == value.0.len()
            && !twice
            && !FORBIDDEN.contains(&name)
            && (!name.ends_with(b"-bin") || value.0.is_empty())
            && (name != b"location" || value.0.iter().all(u8::is_ascii_graphic))
    })
}

fn length(fields: &[(Bytes, Bytes)]) -> Option<usize> {
    let field = fields.iter().find(|(name, _)| name.0 == b"content-length")?;
    Some(std::str::from_utf8(&field.1.0).ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX))
}
