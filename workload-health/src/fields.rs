//! A document read field by field: everything that is wrong with it is collected, each with its path, so that whoever wrote it
//! corrects it once.
//!
//! Istio's shapes: a field that is `null` is absent, an unknown one is a warning, since a newer Istio may know it.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use serde_json::{Map, Number, Value};

use crate::health_report::printable;

/// How much of a value an error shows, in bytes.
const EXCERPT: usize = 64;
/// Up to here every whole number is one of `f64` too.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What was found wrong, a line each that begins with a path: `spec.probe.grpc.port: must be between 1 and 65535, got 0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The document is refused.
    pub errors: Vec<String>,
    /// It is not.
    pub warnings: Vec<String>,
}

impl Findings {
    /// Something that refuses the document.
    pub fn error(&mut self, path: &str, text: impl std::fmt::Display) {
        self.errors.push(format!("{path}: {text}"));
    }

    /// Something to be told.
    pub fn warn(&mut self, path: &str, text: impl std::fmt::Display) {
        self.warnings.push(format!("{path}: {text}"));
    }

    /// `value` with the warnings, if nothing refuses it. `None` without an error cannot be: then the value is missing.
    pub fn checked<T>(self, value: Option<T>) -> Result<Checked<T>, Vec<String>> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(Checked { value, warnings: self.warnings }),
            _ => Err(self.errors),
        }
    }
}

/// A value without errors, and what is to be told about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked<T> {
    /// With all defaults.
    pub value: T,
    /// A line each.
    pub warnings: Vec<String>,
}

/// An object and where it stands.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    path: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// `value` at `path`; an error if it is no object.
    pub fn of(value: &'a Value, path: impl Into<String>, findings: &mut Findings) -> Option<Self> {
        let path = path.into();
        let fields = value.as_object();
        if fields.is_none() {
            findings.error(&path, format_args!("expected an object, got {}", shown(value)));
        }
        Some(Self { path, fields: fields? })
    }

    /// Where the object stands: `spec.probe`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where a field stands: `spec.probe.grpc`.
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Whether the key is written, if only as `null`.
    pub fn mentions(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// The field, unless it is absent or `null`.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Warns of each field that is none of `names`.
    pub fn warn_unknown(&self, names: &[&str], findings: &mut Findings) {
        for name in self.fields.keys().filter(|name| !names.contains(&name.as_str())) {
            findings.warn(&self.path_of(&printable(name)), "unknown field, ignored");
        }
    }

    /// An object below.
    pub fn object(&self, name: &str, findings: &mut Findings) -> Option<Object<'a>> {
        Object::of(self.value(name)?, self.path_of(name), findings)
    }

    /// A text; empty where absent.
    pub fn text(&self, name: &str, findings: &mut Findings) -> &'a str {
        self.value(name).map_or("", |value| text(value, &self.path_of(name), findings).unwrap_or_default())
    }

    /// The elements of a list, none where absent, each with its path.
    pub fn list(&self, name: &str, findings: &mut Findings) -> Vec<(String, &'a Value)> {
        let path = self.path_of(name);
        match self.value(name) {
            None => Vec::new(),
            Some(Value::Array(elements)) => {
                let element = |(index, value)| (format!("{path}[{index}]"), value);
                elements.iter().enumerate().map(element).collect()
            }
            Some(other) => {
                findings.error(&path, format_args!("expected a list, got {}", shown(other)));
                Vec::new()
            }
        }
    }

    /// A map of texts; empty where absent.
    pub fn texts(&self, name: &str, findings: &mut Findings) -> BTreeMap<String, String> {
        let Some(object) = self.object(name, findings) else { return BTreeMap::new() };
        let mut texts = BTreeMap::new();
        for (key, value) in object.fields {
            if let Some(value) = text(value, &object.path_of(&printable(key)), findings) {
                texts.insert(key.clone(), value.to_owned());
            }
        }
        texts
    }

    /// A map of ports by name; empty where absent.
    pub fn ports(&self, name: &str, findings: &mut Findings) -> BTreeMap<String, u16> {
        let Some(object) = self.object(name, findings) else { return BTreeMap::new() };
        let mut ports = BTreeMap::new();
        for key in object.fields.keys() {
            if let Some(number) = object.port(key, findings) {
                ports.insert(key.clone(), number.get());
            }
        }
        ports
    }

    /// A port, which must be there.
    pub fn port(&self, name: &str, findings: &mut Findings) -> Option<NonZeroU16> {
        let path = self.path_of(name);
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

    /// A count that an `int32` of Istio's holds, `default` where absent or 0.
    pub fn count(&self, name: &str, default: u32, findings: &mut Findings) -> u32 {
        let Some(value) = self.value(name) else { return default };
        let path = self.path_of(name);
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

/// `value` as a text, or an error.
pub fn text<'a>(value: &'a Value, path: &str, findings: &mut Findings) -> Option<&'a str> {
    let text = value.as_str();
    if text.is_none() {
        findings.error(path, format_args!("expected text, got {}", shown(value)));
    }
    text
}

/// A whole number, cut to 64 bits; `10.0`, which a protobuf `Struct` makes of 10, is one.
pub fn whole_number(number: &Number) -> Option<i64> {
    if let Some(whole) = number.as_i64() {
        return Some(whole);
    }
    if number.is_u64() {
        return Some(i64::MAX);
    }
    let float = number.as_f64()?;
    // Exact within these bounds, so that nothing is cut off.
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

/// JSON in printable ASCII, cut at 64 bytes.
pub fn shown(value: &Value) -> String {
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
        findings.error(path, format_args!("expected a whole number, got {}", shown(value)));
    }
    number
}
