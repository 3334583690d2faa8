//! Texts of a peer, of an application or of a document, as they may be shown.

use std::fmt::Write as _;

/// The maximum length of a text received from a peer, in bytes; the rest is cut off.
pub const TEXT_BYTES: usize = 256;

/// Returns at most 256 bytes of printable ASCII: every other byte is written as `\x0a`, and the
/// rest is cut off.
pub fn printable(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let width = if (0x20..=0x7e).contains(&byte) { 1 } else { 4 };
        if out.len().saturating_add(width) > TEXT_BYTES {
            break;
        }
        match width {
            1 => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
