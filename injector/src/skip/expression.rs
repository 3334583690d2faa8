//! Finds expressions of a template language, such as Helm's `{{ .Values.port }}`.

use serde_json::Value;

use crate::yaml;

/// Fields of a container of which every part must be known, except for a command.
const KNOWN: [&str; 5] = ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
/// Fields with a text for another program, which may contain the same characters.
const FREE_TEXT: [&str; 4] = ["annotations", "command", "args", "value"];

/// Returns true if a workload is a template: its values are not known.
pub(super) fn is_in_fields(workload: &Value) -> bool {
    contains_expression(workload, false)
}

/// Returns true if a line with a comment contains an expression, which injection would remove.
pub(super) fn is_in_comment(text: &str) -> bool {
    let is_candidate = |line: &str| line.trim_start().starts_with('#') && line.contains("{{");
    // Most documents need no second parser.
    text.lines().any(is_candidate) && yaml::comment_lines(text).iter().any(|comment| comment.contains("{{"))
}

fn contains_expression(value: &Value, is_known: bool) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(elements) => elements.iter().any(|element| contains_expression(element, is_known)),
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            // No command of a probe or hook is rewritten.
            let is_known = (is_known || KNOWN.contains(&key.as_str())) && key != "exec";
            let is_free = !is_known && FREE_TEXT.contains(&key.as_str());
            key.contains("{{") || !is_free && contains_expression(value, is_known)
        }),
        _ => false,
    }
}
