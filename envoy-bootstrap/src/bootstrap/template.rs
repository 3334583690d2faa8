//! Fills values into a JSON template with placeholders such as `${NAME}`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

/// Error for a template placeholder that has no value.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("${{{0}}}: no such placeholder")]
pub(super) struct UnknownPlaceholder(pub(super) String);

/// Replaces every placeholder in `template`. A string that consists of one placeholder becomes the
/// JSON value of that placeholder; null removes the key or the array element. A placeholder inside a
/// longer string is replaced as text.
pub(super) fn fill(template: Value, values: &BTreeMap<&str, Value>) -> Result<Value, UnknownPlaceholder> {
    Ok(match template {
        Value::String(text) => fill_text(text, values)?,
        Value::Array(elements) => {
            let elements = elements.into_iter().map(|element| fill(element, values));
            elements.filter(|element| element != &Ok(Value::Null)).collect::<Result<_, _>>()?
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| fill(value, values).map(|value| (key, value)));
            let fields: Result<Map<_, _>, _> = fields.collect();
            Value::Object(fields?.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    })
}

fn fill_text(text: String, values: &BTreeMap<&str, Value>) -> Result<Value, UnknownPlaceholder> {
    let value = |name: &str| values.get(name).ok_or_else(|| UnknownPlaceholder(name.to_owned()));
    let mut filled = String::new();
    let mut rest = text.as_str();
    while let Some((before, placeholder)) = rest.split_once("${") {
        let (name, after) =
            placeholder.split_once('}').ok_or_else(|| UnknownPlaceholder(placeholder.to_owned()))?;
        if before.is_empty() && after.is_empty() && filled.is_empty() {
            return value(name).cloned();
        }
        filled.push_str(before);
        match value(name)? {
            Value::String(text) => filled.push_str(text),
            other => filled.push_str(&other.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(Value::String(filled))
}
