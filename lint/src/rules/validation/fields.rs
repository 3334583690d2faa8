//! Values of single fields, by the rules of Kubernetes' types and validation.

use injector::pod;
use injector::warning::quote;
use serde_json::Value;

/// The largest number that fits in a field of Kubernetes' types.
const MAX_INT: i64 = i32::MAX as i64;

/// A field, relative to what is checked, and what is wrong with it. The message names the field.
pub(super) type Problem = (String, String);

/// Returns a problem about a field: `periodSeconds = -1: must be …`.
pub(super) fn wrong(field: &str, value: &Value, rule: &str) -> Problem {
    (field.to_owned(), format!("{field} = {}: {rule}", quote(value)))
}

pub(super) fn missing(field: &str) -> Problem {
    (field.to_owned(), format!("{field} is missing"))
}

/// Returns a problem if a value is not an integer of at least `least`; a port is at most 65535.
pub(super) fn int_problem(field: &str, value: &Value, least: i64) -> Option<Problem> {
    let is_port = field.to_ascii_lowercase().ends_with("port");
    let most = if is_port { i64::from(u16::MAX) } else { MAX_INT };
    // kubectl converts 10.0 to 10.
    let whole = value.as_f64().filter(|number| number.fract() == 0.0);
    let is_valid = whole.is_some_and(|number| number >= least as f64 && number <= most as f64);
    (!is_valid).then(|| wrong(field, value, &format!("must be a number from {least} to {most}")))
}

/// Returns a problem if a port is neither a number nor a valid name.
pub(super) fn port_problem(field: &str, port: &Value) -> Option<Problem> {
    match port {
        Value::Null => Some(missing(field)),
        Value::String(name) => port_name_problem(name)
            .map(|reason| wrong(field, port, &format!("as the name of a port, {reason}"))),
        number => int_problem(field, number, 1),
    }
}

/// Returns a problem if a field is set and not a string.
pub(super) fn string_problem(field: &str, value: &Value) -> Option<Problem> {
    let is_valid = matches!(value, Value::Null | Value::String(_));
    (!is_valid).then(|| wrong(field, value, "must be a string; write it in quotes"))
}

/// Returns why a text cannot be the name of a port, as in Kubernetes' `IsValidPortName`.
pub(super) fn port_name_problem(name: &str) -> Option<&'static str> {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() > 15 {
        Some("it must have at most 15 characters")
    } else if !name.bytes().all(is_valid) {
        Some("it must be lower-case letters, digits and hyphens")
    } else if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Some("it must have a letter; write a number without quotes")
    } else if name.contains("--") || name.starts_with('-') || name.ends_with('-') {
        Some("it must not begin or end with a hyphen, nor have two in a row")
    } else {
        None
    }
}

/// Returns the problems of a list of headers, such as `httpGet.httpHeaders`.
pub(super) fn header_problems(field: &str, headers: &Value) -> Vec<Problem> {
    let headers = match headers {
        Value::Null => return Vec::new(),
        Value::Array(headers) => headers,
        other => return vec![wrong(field, other, "must be a list of objects with name and value")],
    };
    let mut problems = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if !header.is_object() {
            problems.push(wrong(&field, header, "must be an object with name and value"));
            continue;
        }
        let name = &header["name"];
        // Kubernetes' `IsHTTPHeaderName`.
        let is_valid = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        match name {
            Value::Null => problems.push(missing(&format!("{field}.name"))),
            Value::String(text) if is_valid(text) => {}
            other => {
                problems.push(wrong(&format!("{field}.name"), other, "must be letters, digits and hyphens"));
            }
        }
        problems.extend(string_problem(&format!("{field}.value"), &header["value"]));
    }
    problems
}

/// Returns the problems of `exec.command`.
pub(super) fn command_problems(fields: &Value) -> Vec<Problem> {
    let field = "exec.command";
    match pod::field(fields, "command") {
        None => vec![missing(field)],
        Some(Value::Array(words)) if words.is_empty() => {
            vec![(field.to_owned(), format!("{field} is empty: must have at least one word"))]
        }
        Some(Value::Array(words)) => {
            let words = words.iter().enumerate();
            words.filter_map(|(index, word)| string_problem(&format!("{field}[{index}]"), word)).collect()
        }
        Some(other) => vec![wrong(field, other, "must be a list of words")],
    }
}
