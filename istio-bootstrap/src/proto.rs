//! Messages of Protocol Buffers as JSON: what Istio's agent accepts, in the form in which it passes it on.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::go;

/// A field, with its name in JSON.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    /// The other fields of its `oneof`, if it belongs to one.
    pub(crate) oneof: &'static [&'static str],
}

pub(crate) enum Type {
    Text,
    Bool,
    Int32,
    Uint32,
    /// Written as text in JSON.
    Int64,
    Double,
    Duration,
    /// Each word at the place of its number, or with its number.
    Enum(&'static [(&'static str, i32)]),
    Message(&'static [Field]),
    List(&'static Type),
    Map(&'static Type),
    /// A scalar that may be absent, such as `google.protobuf.BoolValue`.
    Optional(&'static Type),
}

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The fields that lead to the value, such as `tracing.sampling`.
    pub path: String,
    pub expected: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        write!(out, "{path} is not {}", self.expected)
    }
}

impl std::error::Error for Error {}

impl Error {
    fn within(self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{name}{dot}{}", self.path), ..self }
    }
}

/// Replaces the fields of `message` by those of `value`. Unknown fields and `null` are ignored.
pub(crate) fn merge(fields: &[Field], message: &mut Map<String, Value>, value: &Value) -> Result<(), Error> {
    let given = value.as_object().ok_or_else(|| not("an object"))?;
    for field in fields {
        let value = given.get(field.name).or_else(|| given.get(&snake(field.name)));
        let Some(value) = value.filter(|value| !value.is_null()) else { continue };
        let value = canonical(&field.kind, value).map_err(|error| error.within(field.name))?;
        if field.oneof.is_empty() && field.kind.is_default(&value) {
            message.remove(field.name);
        } else {
            for other in field.oneof {
                message.remove(*other);
            }
            message.insert(field.name.to_owned(), value);
        }
    }
    Ok(())
}

impl Type {
    /// Returns true for what JSON omits: zero, except in a `oneof`.
    fn is_default(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Message(_) | Self::Optional(_) | Self::Duration, _) => false,
            (Self::Enum(words), Value::String(word)) => words.contains(&(word, 0)),
            (_, Value::String(text)) => text.is_empty() || (text == "0" && matches!(self, Self::Int64)),
            (_, Value::Number(number)) => number.as_f64() == Some(0.0),
            (_, Value::Bool(value)) => !value,
            (_, Value::Array(list)) => list.is_empty(),
            (_, Value::Object(map)) => map.is_empty(),
            (_, Value::Null) => true,
        }
    }

    /// What a scalar has that was not set, as a template prints it.
    pub(crate) fn zero(&self) -> Option<Value> {
        match self {
            Self::Text => Some("".into()),
            Self::Bool => Some(false.into()),
            Self::Int32 | Self::Uint32 | Self::Int64 => Some(0.into()),
            _ => None,
        }
    }
}

fn canonical(kind: &Type, value: &Value) -> Result<Value, Error> {
    Ok(match kind {
        Type::Text => value.as_str().ok_or_else(|| not("a text"))?.into(),
        Type::Bool => value.as_bool().ok_or_else(|| not("a boolean"))?.into(),
        Type::Int32 => integer(value)
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| not("a number of 32 bits"))?
            .into(),
        Type::Uint32 => integer(value)
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| not("a number of 32 bits that is not negative"))?
            .into(),
        Type::Int64 => integer(value).ok_or_else(|| not("a number of 64 bits"))?.to_string().into(),
        Type::Double => {
            let number = match value {
                Value::String(text) => text.parse().ok(),
                value => value.as_f64(),
            };
            float(number.ok_or_else(|| not("a number"))?)
        }
        Type::Duration => {
            let text = value.as_str().ok_or_else(|| not("a duration"))?;
            duration(go::parse_duration(text).ok_or_else(|| not("a duration"))?).into()
        }
        Type::Enum(words) => {
            let word = match value {
                Value::String(text) => words.iter().find(|(word, _)| word == text),
                value => words.iter().find(|(_, number)| value.as_i64() == Some(i64::from(*number))),
            };
            word.ok_or_else(|| not("a known word"))?.0.into()
        }
        Type::Message(fields) => {
            let mut message = Map::new();
            merge(fields, &mut message, value)?;
            message.into()
        }
        Type::List(kind) => {
            let list = value.as_array().ok_or_else(|| not("a list"))?;
            list.iter().map(|item| canonical(kind, item)).collect::<Result<Vec<_>, _>>()?.into()
        }
        Type::Map(kind) => {
            let map = value.as_object().ok_or_else(|| not("an object"))?;
            let entry = |(key, value): (&String, &Value)| {
                canonical(kind, value).map(|value| (key.clone(), value)).map_err(|error| error.within(key))
            };
            map.iter().map(entry).collect::<Result<Map<_, _>, _>>()?.into()
        }
        Type::Optional(kind) => canonical(kind, value)?,
    })
}

const fn not(expected: &'static str) -> Error {
    Error { path: String::new(), expected }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        // `1.0` and `1e0` are one too.
        value => value.as_i64().or_else(|| float(value.as_f64()?).as_i64()),
    }
}

/// A number as Go writes it: without a fraction if it has none.
pub(crate) fn float(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "compared with the number")]
    let whole = number as i64;
    #[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "equal means that nothing is lost")]
    let is_whole = whole as f64 == number && whole.abs() < 1 << 53;
    if is_whole { whole.into() } else { number.into() }
}

/// A duration as protobuf's JSON: seconds with none, three, six or nine decimals.
fn duration(duration: Duration) -> String {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
    match nanoseconds {
        0 => format!("{seconds}s"),
        _ if nanoseconds % 1_000_000 == 0 => format!("{seconds}.{:03}s", nanoseconds / 1_000_000),
        _ if nanoseconds % 1_000 == 0 => format!("{seconds}.{:06}s", nanoseconds / 1_000),
        _ => format!("{seconds}.{nanoseconds:09}s"),
    }
}

/// The name of a field in its definition, which JSON may have too.
fn snake(name: &str) -> String {
    name.chars().fold(String::new(), |mut out, char| {
        if char.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(char.to_ascii_lowercase());
        out
    })
}
