//! Finds expressions of a template language, such as Helm's `{{ .Values.port }}`.

use serde_json::Value;

/// Fields of a container of which every part must be known.
const KNOWN: [&str; 5] = ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
/// Fields with a text for another program, which may contain the same characters.
const FREE_TEXT: [&str; 4] = ["annotations", "command", "args", "value"];

/// Returns true if a workload is a template: its values are not known, or an expression is in a
/// comment, which would be lost.
pub(super) fn is_template(document: &Value, text: &str) -> bool {
    let in_comment = |line: &str| line.trim_start().starts_with('#') && line.contains("{{");
    contains_expression(document, false) || text.lines().any(in_comment)
}

fn contains_expression(value: &Value, is_known: bool) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(elements) => elements.iter().any(|element| contains_expression(element, is_known)),
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let is_known = is_known || KNOWN.contains(&key.as_str());
            let is_free = !is_known && FREE_TEXT.contains(&key.as_str());
            key.contains("{{") || !is_free && contains_expression(value, is_known)
        }),
        _ => false,
    }
}
