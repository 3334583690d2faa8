//! Percent-encoding as Go's `net/url` does it for each part of a URL.

/// The bytes that may be unencoded in a part of a URL, in addition to letters, digits and `-_.~`:
/// `plain` lists those that are never encoded, `accepted` those that are left as they are if the
/// whole part is valid.
#[derive(Clone, Copy)]
pub(super) struct Part {
    plain: &'static [u8],
    accepted: &'static [u8],
}

pub(super) const PATH: Part = Part { plain: b"$&+,/:;=@", accepted: b"!$&'()*+,;=:@[]%" };
pub(super) const FRAGMENT: Part = Part { plain: b"$&+,/:;=?@!()*", accepted: b"!$&'()*+,;=:@[]%" };
const HOST: &[u8] = b"!$&'()*+,;=:[]<>\"";

impl Part {
    fn is_plain(self, byte: u8) -> bool {
        is_unreserved(byte) || self.plain.contains(&byte)
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

/// Returns the encoding of a part: unchanged if it is valid, else decoded and encoded again.
/// Returns `None` for a `%` without two hexadecimal digits.
pub(super) fn normal(written: &[u8], part: Part) -> Option<Vec<u8>> {
    let decoded = decode(written)?;
    if written.iter().all(|byte| part.accepted.contains(byte) || part.is_plain(*byte)) {
        return Some(written.to_vec());
    }
    Some(encode(&decoded, part))
}

/// Encodes every byte that is not plain in this part.
pub(super) fn encode(raw: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    for byte in raw {
        if part.is_plain(*byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

/// Replaces each `%XX` by its byte; returns `None` for a `%` without two hexadecimal digits.
pub(super) fn decode(written: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(written.len());
    let mut rest = written.iter();
    while let Some(byte) = rest.next() {
        out.push(if *byte == b'%' { value(*rest.next()?)? << 4 | value(*rest.next()?)? } else { *byte });
    }
    Some(out)
}

/// Decodes a host, in which `%XX` may encode only bytes outside ASCII, and `%` itself.
pub(super) fn decode_host(written: &[u8]) -> Option<Vec<u8>> {
    decode_name(written, |byte| byte >= 0x80)
}

/// Decodes an IPv6 zone with its leading `%25`, in which `%XX` may encode the bytes of a host, and
/// a space.
pub(super) fn decode_zone(written: &[u8]) -> Option<Vec<u8>> {
    decode_name(written, |byte| byte == b' ' || is_host(byte))
}

/// Decodes a name. `encoded` tells which bytes may be written as `%XX`, in addition to `%`.
fn decode_name(written: &[u8], encoded: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(written.len());
    let mut rest = written.iter();
    while let Some(byte) = rest.next() {
        let (byte, allowed) = match byte {
            b'%' => {
                let byte = value(*rest.next()?)? << 4 | value(*rest.next()?)?;
                (byte, byte == b'%' || encoded(byte))
            }
            byte => (*byte, *byte >= 0x80 || is_host(*byte)),
        };
        if !allowed {
            return None;
        }
        out.push(byte);
    }
    Some(out)
}

fn is_host(byte: u8) -> bool {
    is_unreserved(byte) || HOST.contains(&byte)
}

fn value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0'.saturating_add(value),
        _ => b'A'.saturating_sub(10).saturating_add(value),
    }
}
