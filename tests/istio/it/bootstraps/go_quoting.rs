//! Texts as kubelet quotes them in files of the downward API: Go's `%q`.

use std::fmt::Write as _;

/// Quotes a text.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        let code = u32::from(letter);
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            _ if is_printable(letter) => quoted.push(letter),
            _ if code < 0x80 => write!(quoted, "\\x{code:02x}").expect("a String is writable"),
            _ if code < 0x1_0000 => write!(quoted, "\\u{code:04x}").expect("a String is writable"),
            _ => write!(quoted, "\\U{code:08x}").expect("a String is writable"),
        }
    }
    quoted.push('"');
    quoted
}

/// Go's `unicode.IsPrint`, for the letters of the cases: of all spaces, only ASCII's is printable.
fn is_printable(letter: char) -> bool {
    let is_format = matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{10ffff}');
    letter == ' ' || !(letter.is_control() || letter.is_whitespace() || is_format)
}
