//! Converts JSON objects to and from `google.protobuf.Struct`. Equal objects have equal bytes.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

use crate::fields::{Malformed, fields, put_bytes, put_double, put_integer, put_nonempty};

/// Maximum depth of nested objects and lists.
const DEPTH_LIMIT: usize = 32;

// Field numbers of `google.protobuf.Value`.
const NULL: u64 = 1;
const NUMBER: u64 = 2;
const STRING: u64 = 3;
const BOOL: u64 = 4;
const STRUCT: u64 = 5;
const LIST: u64 = 6;

/// Encodes an object as `google.protobuf.Struct`. Any other value becomes an empty one.
pub fn encode_struct(value: &Value) -> Bytes {
    value.as_object().map(encode_object).unwrap_or_default().freeze()
}

fn encode_object(object: &Map<String, Value>) -> BytesMut {
    let mut to = BytesMut::new();
    for (name, value) in object {
        let mut entry = BytesMut::new();
        put_nonempty(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, &encode_value(value));
        put_bytes(&mut to, 1, &entry);
    }
    to
}

fn encode_value(value: &Value) -> BytesMut {
    let mut to = BytesMut::new();
    match value {
        Value::Null => put_integer(&mut to, NULL, 0),
        Value::Bool(value) => put_integer(&mut to, BOOL, (*value).into()),
        Value::Number(number) => put_double(&mut to, NUMBER, number.as_f64().unwrap_or_default()),
        Value::String(text) => put_bytes(&mut to, STRING, text.as_bytes()),
        Value::Array(values) => {
            let mut list = BytesMut::new();
            values.iter().for_each(|value| put_bytes(&mut list, 1, &encode_value(value)));
            put_bytes(&mut to, LIST, &list);
        }
        Value::Object(object) => put_bytes(&mut to, STRUCT, &encode_object(object)),
    }
    to
}

/// Decodes a `google.protobuf.Struct`.
///
/// # Errors
/// If the bytes are no such message, or objects and lists are nested too deeply.
pub fn decode_struct(message: &Bytes) -> Result<Value, Malformed> {
    object(message, 0)
}

fn object(message: &Bytes, depth: usize) -> Result<Value, Malformed> {
    if depth >= DEPTH_LIMIT {
        return Err(Malformed("objects and lists that are nested too deeply"));
    }
    let mut object = Map::new();
    for entry in fields(message) {
        let entry = entry?;
        if entry.number != 1 {
            continue;
        }
        let (mut name, mut content) = (String::new(), Value::Null);
        for field in fields(&entry.bytes()?) {
            let field = field?;
            match field.number {
                1 => name = field.text()?,
                2 => content = value(&field.bytes()?, depth)?,
                _ => {}
            }
        }
        object.insert(name, content);
    }
    Ok(Value::Object(object))
}

fn value(message: &Bytes, depth: usize) -> Result<Value, Malformed> {
    let mut found = Value::Null;
    for field in fields(message) {
        let field = field?;
        found = match field.number {
            NULL => Value::Null,
            NUMBER => number(f64::from_bits(field.integer()?)),
            STRING => field.text()?.into(),
            BOOL => (field.integer()? != 0).into(),
            STRUCT => object(&field.bytes()?, depth + 1)?,
            LIST => list(&field.bytes()?, depth + 1)?,
            _ => continue,
        };
    }
    Ok(found)
}

fn list(message: &Bytes, depth: usize) -> Result<Value, Malformed> {
    if depth >= DEPTH_LIMIT {
        return Err(Malformed("objects and lists that are nested too deeply"));
    }
    let mut values = Vec::new();
    for field in fields(message) {
        let field = field?;
        if field.number == 1 {
            values.push(value(&field.bytes()?, depth)?);
        }
    }
    Ok(values.into())
}

/// Converts a protobuf number, which is always an `f64`; integers become JSON integers.
fn number(number: f64) -> Value {
    /// 2^53, the limit up to which an `f64` represents every integer.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= WHOLE {
        #[expect(clippy::cast_possible_truncation, reason = "the number is an integer and at most 2^53")]
        let number = number as i64;
        number.into()
    } else {
        number.into()
    }
}

#[cfg(test)]
mod tests;
