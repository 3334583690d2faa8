//! Interprets scalars as kubectl's decoder does, which follows YAML 1.1 with exceptions: `yes` is
//! true, `0644` is 420, `1e3` is 1000, but a number that is too large is a string.

use serde_json::Value;

use crate::json;

/// A scalar with its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    /// An integer above the largest `i64`.
    Unsigned(u64),
    /// May be infinite or not a number, which JSON does not have.
    Float(f64),
    Text(String),
}

/// The type of the key of a mapping: keys of two types can become the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyType {
    Boolean,
    Integer,
    /// With the bits of the value.
    Float(u64),
    Text,
}

impl Scalar {
    /// Interprets a plain scalar without a tag.
    pub(super) fn of_plain(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Self::Null,
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                Self::Boolean(true)
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
                Self::Boolean(false)
            }
            ".nan" | ".NaN" | ".NAN" => Self::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Self::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Self::Float(f64::NEG_INFINITY),
            _ => number(text).unwrap_or_else(|| Self::Text(text.to_owned())),
        }
    }

    /// Interprets a scalar with a tag of YAML, such as `int`.
    ///
    /// # Errors
    /// Fails if the text does not have the type of the tag.
    pub(super) fn of_tag(tag: &str, text: &str) -> Result<Self, &'static str> {
        let plain = || Self::of_plain(text);
        match (tag, plain()) {
            ("str", _) => Ok(Self::Text(text.to_owned())),
            ("null", Self::Null) => Ok(Self::Null),
            ("bool", value @ Self::Boolean(_)) => Ok(value),
            ("int", value @ (Self::Integer(_) | Self::Unsigned(_))) => Ok(value),
            ("float", value @ Self::Float(_)) => Ok(value),
            #[expect(clippy::cast_precision_loss, reason = "kubectl loses the same")]
            ("float", Self::Integer(value)) => Ok(Self::Float(value as f64)),
            ("null", _) => Err("is not null, as its tag says"),
            ("bool", _) => Err("is not a boolean, as its tag says"),
            ("int", _) => Err("is not an integer, as its tag says"),
            ("float", _) => Err("is not a number, as its tag says"),
            // Rare tags of YAML 1.1, whose values kubectl converts.
            ("binary" | "timestamp" | "merge", _) => Err("has a tag that is not supported"),
            _ => Ok(Self::Text(text.to_owned())),
        }
    }

    /// Returns the value in JSON.
    ///
    /// # Errors
    /// JSON has neither infinity nor NaN.
    pub(super) fn into_value(self) -> Result<Value, &'static str> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Bool(value),
            Self::Integer(value) => Value::from(value),
            Self::Unsigned(value) => Value::from(value),
            Self::Float(value) => {
                Value::Number(json::number(value).ok_or("is not a number in JSON; write it in quotes")?)
            }
            Self::Text(text) => Value::String(text),
        })
    }

    /// Returns the text of a key in JSON, and its type.
    ///
    /// # Errors
    /// kubectl accepts neither null nor an integer above the largest `i64` as a key.
    pub(super) fn into_key(self) -> Result<(String, KeyType), &'static str> {
        match self {
            Self::Null => Err("null is not a key; write it in quotes"),
            Self::Boolean(value) => Ok((value.to_string(), KeyType::Boolean)),
            Self::Integer(value) => Ok((value.to_string(), KeyType::Integer)),
            Self::Unsigned(_) => Err("the number is too large for a key; write it in quotes"),
            Self::Float(value) => Ok((float_key(value), KeyType::Float(value.to_bits()))),
            Self::Text(text) => Ok((text, KeyType::Text)),
        }
    }
}

/// Interprets a text that begins like a number; `None` if it is a string.
fn number(text: &str) -> Option<Scalar> {
    if text.starts_with('.') {
        // Here an underscore must separate digits.
        let is_separator = |at: usize| {
            let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
            digit(text.as_bytes().get(at - 1)) && digit(text.as_bytes().get(at + 1))
        };
        let is_valid = text.match_indices('_').all(|(at, _)| is_separator(at));
        return if is_valid { float(&text.replace('_', "")).map(Scalar::Float) } else { None };
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '+' || first == '-') {
        return None;
    }
    let digits = text.replace('_', "");
    if let Some(value) = integer(&digits) {
        return Some(value);
    }
    if let Some(value) = float(&digits) {
        return Some(Scalar::Float(value));
    }
    // kubectl's decoder has a rule of its own for these: `0b-1` is -1.
    let binary = digits.strip_prefix("0b").map(|rest| i64::from_str_radix(rest, 2));
    binary.and_then(Result::ok).map(Scalar::Integer)
}

/// Parses an integer with an optional sign and prefix: `0x`, `0o`, `0b`, or `0` for octal.
fn integer(text: &str) -> Option<Scalar> {
    let (sign, unsigned) = match text.split_at_checked(1) {
        Some((sign @ ("+" | "-"), rest)) => (sign, rest),
        _ => ("", text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| char::from(digit).is_digit(radix)) {
        return None;
    }
    if let Ok(value) = i64::from_str_radix(&format!("{sign}{digits}"), radix) {
        return Some(Scalar::Integer(value));
    }
    // A sign makes it a floating-point number.
    let value = if sign.is_empty() { u64::from_str_radix(digits, radix).ok() } else { None };
    value.map(Scalar::Unsigned)
}

/// Parses a decimal floating-point number; `None` if it is too large, so that it is a string.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !(whole.is_empty() && fraction.is_empty());
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    };
    if !has_digits || !is_digits(whole) || !is_digits(fraction) || !exponent.is_none_or(is_exponent) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Formats a key as Go's `FormatFloat(value, 'g', -1, 32)` does, with YAML's words for infinity.
#[expect(clippy::cast_possible_truncation, reason = "kubectl formats keys with 32 bits")]
fn float_key(value: f64) -> String {
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

#[cfg(test)]
mod tests;
