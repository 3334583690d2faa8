//! Reads and writes single YAML documents with kubectl's interpretation of values.

mod compose;
mod indentation;
mod scalar;

use std::borrow::Cow;

use granit_parser::{Event, Parser, Placement};
use serde_json::Value;

use compose::Composer;
pub use compose::{Content, Entry, Node};
pub(crate) use indentation::Repeats;

/// Maximum nesting depth.
pub const DEPTH: usize = 128;
/// Maximum number of nodes with all aliases expanded.
pub const NODES: usize = 1_000_000;

/// A text that is not YAML or exceeds a limit: the position, counted from 1, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {reason}")]
pub struct YamlError {
    pub line: u64,
    pub column: u64,
    /// Message of the parser in one line.
    pub reason: String,
}

/// Parses one document; an empty one is `null`.
///
/// Values and keys are interpreted as kubectl does: `0644` is 420, `yes` is true, `<<` is merged.
/// Unlike kubectl, which uses the last value of a duplicate key, duplicate keys are an error, as are
/// more than a million nodes, more than 128 levels, and anchors and aliases that repeat more text than
/// twice the document and 1 MiB.
pub fn value(text: &str) -> Result<Value, YamlError> {
    repaired_value(text, &mut Repeats::default()).1
}

/// Like [`value`], with the budget of a stream. Returns also the text that was parsed.
pub(crate) fn repaired_value<'a>(
    text: &'a str,
    repeats: &mut Repeats,
) -> (Cow<'a, str>, Result<Value, YamlError>) {
    indentation::parse(text, repeats, |text| value_within(text, NODES))
}

/// Like [`value`], with another maximum number of nodes with all aliases expanded. Lines of quoted
/// scalars must be indented: the text is parsed only once.
pub fn value_within(text: &str, nodes: usize) -> Result<Value, YamlError> {
    check_characters(text)?;
    let document = Composer::new(text, nodes).document()?;
    document.map_or(Ok(Value::Null), Node::into_value)
}

/// Parses one document and keeps the lines of its fields; `None` if it is empty.
pub fn tree(text: &str) -> Result<Option<Node>, YamlError> {
    indentation::parse(text, &mut Repeats::default(), |text| Composer::new(text, NODES).document()).1
}

/// Returns the comments of a document that have a line of their own.
pub(crate) fn comment_lines(text: &str) -> Vec<String> {
    let options = granit_parser::options! { emit_comments: true };
    let text = text.trim_start_matches('\u{feff}');
    let mut repeats = Repeats::default();
    let (text, _) = indentation::parse(text, &mut repeats, |text| Composer::new(text, NODES).document());
    let events = Parser::new_from_str_with_options(&text, options);
    let comments = events.map_while(Result::ok).filter_map(|(event, _)| match event {
        Event::Comment(_, Placement::Right) => None,
        Event::Comment(text, _) => Some(text.into_owned()),
        _ => None,
    });
    comments.collect()
}

/// Rejects characters that kubectl rejects, or reads as the end of a line.
fn check_characters(text: &str) -> Result<(), YamlError> {
    let reason = |char: char| match char {
        '\u{85}' | '\u{2028}' | '\u{2029}' => Some("is a line break for kubectl"),
        '\t' | '\n' | '\r' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'.. => None,
        _ => Some("is not allowed in YAML"),
    };
    for (line, words) in (1..).zip(text.split('\n')) {
        for (column, char) in (1..).zip(words.chars()) {
            if let Some(reason) = reason(char) {
                let code = u32::from(char);
                let reason =
                    format!("the character U+{code:04X} {reason}; write \"\\u{code:04x}\" in double quotes");
                return Err(YamlError { line, column, reason });
            }
        }
    }
    Ok(())
}

/// Formats a value with its keys in order and a newline at the end. kubectl reads the same value
/// from it.
pub fn text(value: &Value) -> String {
    // kubectl rejects a block scalar that has a tab at the start of a line.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: !holds_tab(value) };
    let mut text =
        serde_saphyr::to_string_with_options(value, options).expect("a JSON value can be written as YAML");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn holds_tab(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\t'),
        Value::Array(elements) => elements.iter().any(holds_tab),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\t') || holds_tab(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
