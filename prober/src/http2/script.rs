//! Frames that an application of a test sends.

use super::frame::{FrameHead, flag, kind};
use super::hpack;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHead::write(kind, flags, stream, payload, &mut out);
    out
}

pub(super) fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = entries
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(kind::SETTINGS, 0, 0, &payload)
}

pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    fields.iter().for_each(|(name, value)| hpack::encode(name.as_bytes(), value.as_bytes(), &mut block));
    block
}

/// `end` is true for the last frame of the stream.
pub(super) fn headers(stream: u32, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
    let flags = flag::END_HEADERS | if end { flag::END_STREAM } else { 0 };
    frame(kind::HEADERS, flags, stream, &block(fields))
}

pub(super) fn data(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    frame(kind::DATA, if end { flag::END_STREAM } else { 0 }, stream, bytes)
}

pub(super) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub(super) fn go_away(last_stream: u32, code: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last_stream.to_be_bytes(), code.to_be_bytes()].concat())
}
