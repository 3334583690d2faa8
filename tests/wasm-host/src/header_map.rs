//! Serialized header maps, as proxy-wasm passes them: a count, the sizes of each name and value
//! (all u32, little endian), then each name and value followed by NUL.

use crate::transcript::Headers;

/// The limits of proxy-wasm-cpp-host (`limits.h`).
const MAX_BYTES: usize = 1 << 20;
const MAX_PAIRS: usize = 1024;

/// Parses a map. As in Envoy, invalid bytes are an empty map and not an error.
pub(super) fn parse(bytes: &[u8]) -> Headers {
    try_parse(bytes).unwrap_or_default()
}

fn try_parse(bytes: &[u8]) -> Option<Headers> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let (count, rest) = number(bytes)?;
    if count > MAX_PAIRS {
        return None;
    }
    let (sizes, mut rest) = rest.split_at_checked(count * 8)?;
    let mut headers = Headers::new();
    for pair in sizes.chunks_exact(8) {
        let (name_size, value_size) = number(pair)?;
        let (value_size, _) = number(value_size)?;
        let name;
        (name, rest) = text(rest, name_size)?;
        let value;
        (value, rest) = text(rest, value_size)?;
        headers.push((name, value));
    }
    rest.is_empty().then_some(headers)
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*head)).ok()?, rest))
}

fn text(bytes: &[u8], size: usize) -> Option<(Vec<u8>, &[u8])> {
    let (text, rest) = bytes.split_at_checked(size)?;
    let (nul, rest) = rest.split_first()?;
    (*nul == 0).then(|| (text.to_vec(), rest))
}

#[cfg(test)]
mod tests;
