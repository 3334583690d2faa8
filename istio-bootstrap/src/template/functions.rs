//! The functions that templates may call.

use std::fmt::Write as _;

use serde_json::Value;

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Not,
    Json,
    JavaScript,
}

/// Go's rule for `if`: zero, and what is empty, is false.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// The text of a value as Go prints it, for values of the kinds that a bootstrap contains.
pub(super) fn printed(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("<no value>".to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Escapes a text for a string of JavaScript, as Go's `JSEscapeString`.
pub(super) fn javascript(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\\' | '\'' | '"' => out.extend(['\\', char]),
            '<' | '>' | '&' | '=' => {
                let _ = write!(out, "\\u{:04X}", u32::from(char));
            }
            _ if char.is_control() => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04X}");
                }
            }
            _ => out.push(char),
        }
    }
    out
}
