//! One YAML document in and out, read with the meaning that kubectl gives it.

use serde_json::Value;

/// Levels of nesting; more is refused.
pub const DEPTH: usize = 128;
/// Nodes with all aliases followed; more is refused.
const NODES: usize = 1_000_000;

/// A text that is no YAML, or none that may be read: where, from 1, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {reason}")]
pub struct YamlError {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
    /// The reader's words, one line.
    pub reason: String,
}

/// Reads one document; an empty one is `null`.
///
/// As kubectl: `0644` is 420, `yes` is true, `<<` is merged. A key that stands twice is refused, where kubectl takes the last;
/// so are more than a million nodes and more than 128 levels.
pub fn value(text: &str) -> Result<Value, YamlError> {
    let budget = serde_saphyr::budget! {
        max_depth: DEPTH,
        flow_nesting_limit: DEPTH,
        max_nodes: NODES,
        max_events: 4 * NODES,
    };
    let options = serde_saphyr::options! {
        budget: budget,
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let location = error.location();
        let (line, column) = location.map_or((1, 1), |location| (location.line(), location.column()));
        let words = error.without_snippet().to_string();
        YamlError { line, column, reason: one_line(&words) }
    })
}

/// Writes a value, keys in their order, with a line end. kubectl reads the same value from it.
pub fn text(value: &Value) -> String {
    // kubectl refuses a block scalar with a tab at the start of a line.
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

/// The first line, without the reader's own position at its end.
fn one_line(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or(line);
    // Advice for programmers.
    let line = line.split(", set DuplicateKeyPolicy").next().unwrap_or(line);
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
