//! Documents as people write them in YAML.

use std::fmt::Write as _;

use fastrand::Rng;
use serde_json::{Number, Value};

/// Texts that are not texts without quotes.
const RESERVED: [&str; 12] =
    ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];

/// Writes a document, with or without quotes, comments, and flow style.
pub(super) fn write(rng: &mut Rng, document: &Value) -> String {
    let mut text = String::new();
    if rng.u32(..4) == 0 {
        text.push_str("---\n# Comments are ignored: [\n");
    }
    node(rng, &mut text, document, 0);
    text
}

/// Writes a value from the start of a line, or after a space.
fn node(rng: &mut Rng, text: &mut String, value: &Value, indent: usize) {
    let spaces = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() && rng.u32(..8) > 0 => {
            for (key, value) in map {
                let key = scalar(rng, key);
                write!(text, "{spaces}{key}:").expect("a String is writable");
                child(rng, text, value, indent);
            }
        }
        Value::Array(list) if !list.is_empty() && rng.u32(..8) > 0 => {
            for value in list {
                write!(text, "{spaces}-").expect("a String is writable");
                child(rng, text, value, indent);
            }
        }
        other => writeln!(text, "{spaces}{other}").expect("a String is writable"),
    }
}

/// Writes a value after the key or dash that it belongs to.
fn child(rng: &mut Rng, text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            node(rng, text, value, indent + 2);
        }
        Value::Array(list) if !list.is_empty() => {
            text.push('\n');
            node(rng, text, value, indent + 2);
        }
        Value::String(value) => {
            let comment = if rng.u32(..8) == 0 { " # \"why\"" } else { "" };
            let value = scalar(rng, value);
            writeln!(text, " {value}{comment}").expect("a String is writable");
        }
        Value::Number(number) => writeln!(text, " {}", integer(rng, number)).expect("a String is writable"),
        Value::Bool(value) => {
            let words = if *value { ["true", "yes", "On"] } else { ["false", "NO", "off"] };
            writeln!(text, " {}", words[rng.usize(..3)]).expect("a String is writable");
        }
        other => writeln!(text, " {other}").expect("a String is writable"),
    }
}

/// Writes a number in one of the forms of YAML 1.1.
fn integer(rng: &mut Rng, number: &Number) -> String {
    match (rng.u32(..8), number.as_u64()) {
        (0, Some(number)) => format!("{number:#x}"),
        (1, Some(number)) => format!("0{number:o}"),
        (2, Some(number)) => format!("{number:#b}"),
        (3, Some(number)) => format!("+{number}"),
        _ => number.to_string(),
    }
}

/// Writes a text without quotes where that is possible.
fn scalar(rng: &mut Rng, value: &str) -> String {
    let is_plain = value.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && value.chars().all(|letter| letter.is_ascii_alphanumeric() || "./_-".contains(letter))
        && !RESERVED.contains(&value.to_ascii_lowercase().as_str());
    match rng.u32(..3) {
        0 if is_plain => value.to_owned(),
        1 if value.chars().all(|letter| !letter.is_control()) => format!("'{}'", value.replace('\'', "''")),
        _ => Value::from(value).to_string(),
    }
}
