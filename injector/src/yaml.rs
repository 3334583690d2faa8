//! Reads and writes single YAML documents with kubectl's interpretation of values.

use serde_json::Value;

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
/// Values are interpreted as kubectl does: `0644` is 420, `yes` is true, `<<` is merged. Unlike
/// kubectl, which uses the last value of a duplicate key, duplicate keys are an error, as are more
/// than a million nodes and more than 128 levels.
pub fn value(text: &str) -> Result<Value, YamlError> {
    value_within(text, NODES)
}

/// Like [`value`], with another maximum number of nodes with all aliases expanded.
pub fn value_within(text: &str, nodes: usize) -> Result<Value, YamlError> {
    let budget = serde_saphyr::budget! {
        max_depth: DEPTH,
        flow_nesting_limit: DEPTH,
        max_nodes: nodes,
        max_events: 4 * nodes,
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

/// Returns the first line without the parser's own position at its end.
fn one_line(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or(line);
    if let Some(limit) = line.trim_start_matches("error: ").strip_prefix("budget breached: ") {
        let is_depth = limit.starts_with("Depth");
        return if is_depth { format!("more than {DEPTH} levels") } else { "too many values".to_owned() };
    }
    // The parser adds advice for programmers here.
    let line = line.split(", set DuplicateKeyPolicy").next().unwrap_or(line);
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
