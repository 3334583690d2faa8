//! Encodes HTTP/2 frames, valid or invalid (RFC 9113, section 4.1).

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// Longer header blocks are split into CONTINUATION frames.
const FRAME_LIMIT: usize = 16_384;
const CONTINUATION: u8 = 9;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame of a test is short").to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()];
    [&head.concat(), payload].concat()
}

/// Encodes HEADERS, followed by CONTINUATION if one frame is too short.
pub fn headers(stream: u32, fields: &[(Vec<u8>, Vec<u8>)], end: bool) -> Vec<u8> {
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    let mut parts: Vec<&[u8]> = block.chunks(FRAME_LIMIT).collect();
    if parts.is_empty() {
        parts.push(&[]);
    }
    let last = parts.len() - 1;
    let part = |(index, part): (usize, &&[u8])| {
        let kind = if index == 0 { HEADERS } else { CONTINUATION };
        let ends_stream = if end && index == 0 { END_STREAM } else { 0 };
        let ends_headers = if index == last { END_HEADERS } else { 0 };
        frame(kind, ends_stream | ends_headers, stream, part)
    };
    parts.iter().enumerate().flat_map(part).collect()
}

/// Encodes a literal field without indexing (RFC 7541, section 6.2.2) and without Huffman coding.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0], length(name.len()).as_slice(), name, &length(value.len()), value].concat()
}

/// Encodes an integer with a prefix of seven bits (RFC 7541, section 5.1).
fn length(number: usize) -> Vec<u8> {
    const PREFIX: usize = 127;
    let low = |number: usize| u8::try_from(number % 128).expect("below 128");
    if number < PREFIX {
        return vec![low(number)];
    }
    let (mut bytes, mut rest) = (vec![127], number - PREFIX);
    while rest >= 128 {
        bytes.push(low(rest) | 128);
        rest /= 128;
    }
    bytes.push(low(rest));
    bytes
}
