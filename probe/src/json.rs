//! A JSON value that keeps the order of an object's fields, and duplicate keys.
//!
//! `serde_json::Value` silently keeps the last of two equal keys. A configuration with duplicate
//! keys must be rejected, so it is parsed into this type.

mod error;

use std::fmt::Write as _;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

pub use error::ConfigError;

/// The maximum nesting of objects and arrays; deeper input is rejected before it is parsed.
const MAX_DEPTH: usize = 32;
/// The maximum length of a value in an error text, in bytes.
const EXCERPT: usize = 64;

/// A JSON value. An object is the list of its key/value pairs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses all of `bytes`. An error names `key`, and the line and column of a syntax error.
    pub(crate) fn parse(key: &str, bytes: &[u8]) -> Result<Self, ConfigError> {
        if depth(bytes) > MAX_DEPTH {
            return Err(ConfigError::too_large(key, &format!("{MAX_DEPTH} levels")));
        }
        serde_json::from_slice(bytes).map_err(|error| ConfigError::syntax(key, bytes, error.to_string()))
    }

    pub(crate) fn object(&self, key: &str) -> Result<&[(String, Json)], ConfigError> {
        match self {
            Self::Object(pairs) => Ok(pairs),
            other => Err(ConfigError::new(key, other, "must be an object")),
        }
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<bool, ConfigError> {
        match self {
            Self::Bool(value) => Ok(*value),
            other => Err(ConfigError::new(key, other, "must be true or false")),
        }
    }

    /// Returns an integer, clamped to 64 bits. `80.0`, `8e1` and `"80"` are not integers.
    pub(crate) fn integer(&self, key: &str) -> Result<i64, ConfigError> {
        let wrong = || ConfigError::new(key, self, "must be an integer");
        match self {
            Self::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(integer), _) => Ok(integer),
                (None, Some(_)) => Ok(i64::MAX),
                (None, None) => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    pub(crate) fn string(&self, key: &str) -> Result<&str, ConfigError> {
        match self {
            Self::String(text) => Ok(text),
            other => Err(ConfigError::new(key, other, "must be a string")),
        }
    }

    pub(crate) fn array(&self, key: &str) -> Result<&[Json], ConfigError> {
        match self {
            Self::Array(elements) => Ok(elements),
            other => Err(ConfigError::new(key, other, "must be an array")),
        }
    }

    /// Returns the value in printable ASCII, cut at 64 bytes.
    pub(crate) fn excerpt(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        if text.len() > EXCERPT {
            text.truncate(EXCERPT);
            text.push('…');
        }
        text
    }

    /// Writes until the output exceeds the length of an excerpt.
    fn write(&self, out: &mut String) {
        if out.len() > EXCERPT {
            return;
        }
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => {
                let _ = write!(out, "{number}");
            }
            Self::String(text) => write_string(text, out),
            Self::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().take(EXCERPT).enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(pairs) => {
                out.push('{');
                for (index, (key, value)) in pairs.iter().take(EXCERPT).enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_string(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Writes a JSON string in printable ASCII.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        if out.len() > EXCERPT {
            break;
        }
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(char),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// Returns true if two pairs have the same key; `ignore_case` ignores ASCII case.
pub(crate) fn has_duplicate_key(pairs: &[(String, Json)], ignore_case: bool) -> bool {
    let name = |key: &str| if ignore_case { key.to_ascii_lowercase() } else { key.to_owned() };
    let mut names: Vec<String> = pairs.iter().map(|(key, _)| name(key)).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
}

/// Returns the value of the field `name`; `null` counts as absent. `ignore_case` ignores ASCII case, as
/// Go's `encoding/json` does.
pub(crate) fn field<'a>(pairs: &'a [(String, Json)], name: &str, ignore_case: bool) -> Option<&'a Json> {
    let same = |key: &str| if ignore_case { key.eq_ignore_ascii_case(name) } else { key == name };
    pairs.iter().find(|(key, _)| same(key)).map(|(_, value)| value).filter(|value| **value != Json::Null)
}

/// Returns the maximum nesting depth of brackets outside strings.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut inside, mut escaped) = (0usize, 0usize, false, false);
    for byte in bytes {
        match (inside, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => inside = !inside,
            (false, b'[' | b'{') => {
                depth = depth.saturating_add(1);
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element()? {
            array.push(element);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(Json::Object(pairs))
    }
}

#[cfg(test)]
mod tests;
