//! The tokens of an action.

use serde_json::Value;

use super::text::Source;
use super::{Error, Place};

#[derive(Debug, PartialEq)]
pub(super) enum Token {
    /// `if`, `end`, or the name of a function.
    Word(String),
    /// `.a.b`, or `.`.
    Field(Vec<String>),
    /// `$name.a`.
    Variable(String, Vec<String>),
    Constant(Value),
    Open,
    Close,
    Pipe,
    Comma,
    Define,
    /// `}}`.
    End,
}

/// Reads the next token of an action, and where it begins.
pub(super) fn next(source: &mut Source<'_>) -> Result<(Token, Place), Error> {
    let action = source.place();
    if source.end_of_action() {
        return Ok((Token::End, action));
    }
    source.skip_space();
    let place = source.place();
    let Some(first) = source.rest().chars().next() else {
        return Err(place.error("the action has no end"));
    };
    let token = match first {
        '(' | ')' | '|' | ',' => {
            source.take(1);
            match first {
                '(' => Token::Open,
                ')' => Token::Close,
                '|' => Token::Pipe,
                _ => Token::Comma,
            }
        }
        ':' if source.take_if(":=") => Token::Define,
        '.' => Token::Field(fields(source, place)?),
        '$' => {
            source.take(1);
            let name = word(source).to_owned();
            Token::Variable(name, fields(source, place)?)
        }
        '"' => Token::Constant(quoted(source, place)?.into()),
        '`' => Token::Constant(raw(source, place)?.into()),
        '-' | '0'..='9' => Token::Constant(integer(source, place)?.into()),
        _ => match word(source) {
            "" => return Err(place.error(format!("`{}` is not supported", first.escape_default()))),
            "true" => Token::Constant(true.into()),
            "false" => Token::Constant(false.into()),
            "nil" => Token::Constant(Value::Null),
            name => Token::Word(name.to_owned()),
        },
    };
    Ok((token, place))
}

fn word<'a>(source: &mut Source<'a>) -> &'a str {
    let is_end = |char: char| !char.is_alphanumeric() && char != '_';
    source.take(source.rest().find(is_end).unwrap_or(source.rest().len()))
}

/// Reads `.a.b`. A single `.` has no fields.
fn fields(source: &mut Source<'_>, place: Place) -> Result<Vec<String>, Error> {
    let mut fields = Vec::new();
    while source.take_if(".") {
        match word(source) {
            "" if fields.is_empty() && !source.rest().starts_with('.') => return Ok(fields),
            "" => return Err(place.error("a name is missing after `.`")),
            name => fields.push(name.to_owned()),
        }
    }
    Ok(fields)
}

/// A string with Go's escapes, of which only those are supported that JSON has too.
fn quoted(source: &mut Source<'_>, place: Place) -> Result<String, Error> {
    let mut is_escaped = false;
    let end = source.rest().char_indices().skip(1).find(|(_, char)| {
        let is_end = *char == '"' && !is_escaped;
        is_escaped = *char == '\\' && !is_escaped;
        is_end || *char == '\n'
    });
    match end {
        Some((end, '"')) => {
            let text = source.take(end + 1);
            serde_json::from_str(text).map_err(|_| place.error("an escape in the string is not supported"))
        }
        _ => Err(place.error("the string has no end")),
    }
}

fn raw(source: &mut Source<'_>, place: Place) -> Result<String, Error> {
    let mut parts = source.rest().splitn(3, '`').skip(1);
    match (parts.next(), parts.next()) {
        (Some(text), Some(_)) => {
            source.take(text.len() + 2);
            Ok(text.to_owned())
        }
        _ => Err(place.error("the string has no end")),
    }
}

fn integer(source: &mut Source<'_>, place: Place) -> Result<i64, Error> {
    let is_end = |char: char| !matches!(char, '-' | '+' | '.' | '_') && !char.is_alphanumeric();
    let text = source.take(source.rest().find(is_end).unwrap_or(source.rest().len()));
    // Go reads a leading zero as octal.
    let digits = text.trim_start_matches('-');
    let is_octal = digits.len() > 1 && digits.starts_with('0');
    text.parse().ok().filter(|_| !is_octal).ok_or_else(|| place.error("only decimal integers are supported"))
}
