//! Reads a document field by field and collects all errors with their paths, so that its author can
//! correct them at once.
//!
//! The rules are Istio's: a field with the value `null` is absent. An unknown field is a warning,
//! because a newer Istio may define it.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use serde_json::{Map, Number, Value};

use crate::text::printable;

/// The maximum length of a value in an error text, in bytes.
const EXCERPT: usize = 64;
/// The largest `f64` up to which every whole number has an exact `f64` representation (2^53).
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The errors and warnings about a document, one line each, which begins with a path:
/// `spec.probe.grpc.port: must be between 1 and 65535, got 0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

impl Findings {
    /// Adds the error `<path>: <text>`.
    pub fn error(&mut self, path: &str, text: impl std::fmt::Display) {
        self.errors.push(format!("{path}: {text}"));
    }

    /// Adds the warning `<path>: <text>`.
    pub fn warn(&mut self, path: &str, text: impl std::fmt::Display) {
        self.warnings.push(format!("{path}: {text}"));
    }

    /// Returns `value` with the warnings if there are no errors. The caller must add an error if
    /// `value` is `None`.
    pub fn checked<T>(self, value: Option<T>) -> Result<Checked<T>, Vec<String>> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(Checked { value, warnings: self.warnings }),
            _ => Err(self.errors),
        }
    }
}

/// A valid value with its warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked<T> {
    /// The value with all defaults set.
    pub value: T,
    pub warnings: Vec<String>,
}

/// An object and its path in the document.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    path: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// Returns the object `value` at `path`; adds an error if it is not an object.
    pub fn new(value: &'a Value, path: impl Into<String>, findings: &mut Findings) -> Option<Self> {
        let path = path.into();
        let fields = value.as_object();
        if fields.is_none() {
            findings.error(&path, format_args!("expected an object, got {}", excerpt(value)));
        }
        Some(Self { path, fields: fields? })
    }

    /// Returns the path of the object, for example `spec.probe`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of a field, for example `spec.probe.grpc`.
    pub fn field_path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns true if the key exists, even with the value `null`.
    pub fn contains_key(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Returns the value of a field, unless it is absent or `null`.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Adds a warning for each field that is not in `names`.
    pub fn warn_unknown(&self, names: &[&str], findings: &mut Findings) {
        for name in self.fields.keys().filter(|name| !names.contains(&name.as_str())) {
            findings.warn(&self.field_path(&printable(name)), "unknown field, ignored");
        }
    }

    /// Returns a nested object; adds an error if the field is not an object.
    pub fn object(&self, name: &str, findings: &mut Findings) -> Option<Object<'a>> {
        Object::new(self.value(name)?, self.field_path(name), findings)
    }

    /// Returns a string field; empty if absent.
    pub fn string(&self, name: &str, findings: &mut Findings) -> &'a str {
        self.value(name)
            .map_or("", |value| string(value, &self.field_path(name), findings).unwrap_or_default())
    }

    /// Returns the elements of an array with their paths; none if absent.
    pub fn list(&self, name: &str, findings: &mut Findings) -> Vec<(String, &'a Value)> {
        let path = self.field_path(name);
        match self.value(name) {
            None => Vec::new(),
            Some(Value::Array(elements)) => {
                let element = |(index, value)| (format!("{path}[{index}]"), value);
                elements.iter().enumerate().map(element).collect()
            }
            Some(other) => {
                findings.error(&path, format_args!("expected a list, got {}", excerpt(other)));
                Vec::new()
            }
        }
    }

    /// Returns a map of strings; empty if absent.
    pub fn string_map(&self, name: &str, findings: &mut Findings) -> BTreeMap<String, String> {
        let Some(object) = self.object(name, findings) else { return BTreeMap::new() };
        let mut texts = BTreeMap::new();
        for (key, value) in object.fields {
            if let Some(value) = string(value, &object.field_path(&printable(key)), findings) {
                texts.insert(key.clone(), value.to_owned());
            }
        }
        texts
    }

    /// Returns a map of ports by name; empty if absent.
    pub fn port_map(&self, name: &str, findings: &mut Findings) -> BTreeMap<String, u16> {
        let Some(object) = self.object(name, findings) else { return BTreeMap::new() };
        let mut ports = BTreeMap::new();
        for key in object.fields.keys() {
            if let Some(number) = object.port(key, findings) {
                ports.insert(key.clone(), number.get());
            }
        }
        ports
    }

    /// Returns a required port; adds an error unless it is 1 to 65535.
    pub fn port(&self, name: &str, findings: &mut Findings) -> Option<NonZeroU16> {
        let path = self.field_path(name);
        let number = match self.value(name) {
            Some(value) => whole(value, &path, findings)?,
            None => 0,
        };
        let port = u16::try_from(number).ok().and_then(NonZeroU16::new);
        if port.is_none() {
            findings.error(&path, format_args!("must be between 1 and 65535, got {number}"));
        }
        port
    }

    /// Returns a number that fits into Istio's `int32`; `default` if it is absent or 0.
    pub fn int32(&self, name: &str, default: u32, findings: &mut Findings) -> u32 {
        let Some(value) = self.value(name) else { return default };
        let path = self.field_path(name);
        match whole(value, &path, findings) {
            Some(number @ ..0) => {
                findings.error(&path, format_args!("must be 0 or more, got {number}"));
                default
            }
            Some(number @ 0..=0x7fff_ffff) => match u32::try_from(number).unwrap_or(0) {
                0 => default,
                count => count,
            },
            Some(number) => {
                findings.error(&path, format_args!("expected a whole number, got {number}"));
                default
            }
            None => default,
        }
    }
}

/// Returns `value` as a string; adds an error if it is not one.
pub fn string<'a>(value: &'a Value, path: &str, findings: &mut Findings) -> Option<&'a str> {
    let text = value.as_str();
    if text.is_none() {
        findings.error(path, format_args!("expected a string, got {}", excerpt(value)));
    }
    text
}

/// Returns a whole number, clamped to 64 bits. `10.0` counts, because a protobuf `Struct` stores 10
/// as `10.0`.
pub fn whole_number(number: &Number) -> Option<i64> {
    if let Some(whole) = number.as_i64() {
        return Some(whole);
    }
    if number.is_u64() {
        return Some(i64::MAX);
    }
    let float = number.as_f64()?;
    // Within these bounds the conversion is exact.
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

/// Returns the value as JSON in printable ASCII, cut at 64 bytes.
pub fn excerpt(value: &Value) -> String {
    let mut text = printable(&value.to_string());
    if text.len() > EXCERPT {
        text.truncate(EXCERPT);
        text.push_str("...");
    }
    text
}

fn whole(value: &Value, path: &str, findings: &mut Findings) -> Option<i64> {
    let number = value.as_number().and_then(whole_number);
    if number.is_none() {
        findings.error(path, format_args!("expected a whole number, got {}", excerpt(value)));
    }
    number
}
