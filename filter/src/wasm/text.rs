//! Turns header values into text, which is what the SDK's callouts accept.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns a header value as text. Bytes that are not UTF-8 are percent-encoded: only the target and
/// the `referer` of a redirected request can have some, and a server decodes them to the same bytes.
pub(super) fn text(value: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(value) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in value.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::text;

    #[test]
    fn bytes_that_are_not_utf8_are_percent_encoded() {
        assert!(matches!(text("/a?ü".as_bytes()), Cow::Borrowed("/a?ü")));
        assert_eq!(text(b""), "");
        assert_eq!(text(b"/?a=\xff\xc3b\xc3"), "/?a=%FF%C3b%C3");
    }
}
