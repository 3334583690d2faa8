//! Texts of documents, file names, applications and API servers, as they may be written to a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns a text as one line: each character that a terminal interprets, or that hides or reorders
/// others, is escaped as in Rust, for example `\u{1b}` or `\n`.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// Like [`line()`], but keeps line feeds and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |char| is_unsafe(char) && !matches!(char, '\n' | '\t'))
}

/// Returns JSON with the same value, whose strings have escapes such as `\u009b` for the characters
/// that [`line()`] escapes.
pub fn json(text: &str) -> Cow<'_, str> {
    let escape = |char: char, out: &mut String| {
        for unit in char.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    };
    // Between strings, JSON has no other characters than these.
    replaced(text, |char| is_unsafe(char) && !matches!(char, '\n' | '\r' | '\t'), escape)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    replaced(text, is_escaped, |char, out| out.extend(char.escape_default()))
}

fn replaced(
    text: &str,
    is_replaced: impl Fn(char) -> bool,
    replace: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if is_replaced(char) { replace(char, &mut out) } else { out.push(char) }
    }
    out.into()
}

/// Returns true for control characters (C0, DEL and C1), separators of lines and paragraphs, marks and
/// overrides of the text direction, and invisible characters, except for the two joiners that
/// scripts and emoji need.
fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests;
