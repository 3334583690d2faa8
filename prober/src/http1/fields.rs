//! The header fields of a response, by the rules of Go's `textproto.Reader.ReadMIMEHeader`: lines end with
//! a line feed, a line that begins with a blank continues the previous one, and names may contain spaces,
//! but are then unknown.

use probe::Reason;

/// The longest value that is kept.
const VALUE_BYTES: usize = 1 << 20;
/// The length of the longest name that matters.
const NAME_BYTES: usize = "transfer-encoding".len();

/// Fields that must not be trailers.
const NO_TRAILERS: [&[u8]; 3] = [b"transfer-encoding", b"trailer", b"content-length"];
const UPGRADE: [&[u8]; 1] = [b"upgrade"];

/// What matters for a probe. However many fields a response has, this stays small.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// The first `Location`.
    pub(super) location: Option<Vec<u8>>,
    /// The first `Content-Length`, and the first one that differs.
    pub(super) content_lengths: Vec<Vec<u8>>,
    /// The first two `Transfer-Encoding`s.
    pub(super) transfer_encodings: Vec<Vec<u8>>,
    /// True if a `Trailer` names a field that must not be one.
    pub(super) has_invalid_trailer: bool,
    /// True if a `Connection` names `upgrade`.
    pub(super) names_upgrade: bool,
    /// The first `Upgrade`.
    pub(super) upgrade: Option<Vec<u8>>,
}

/// Parses the lines of all fields, to the empty line after them.
#[derive(Debug, Default)]
pub(super) struct FieldParser {
    place: Place,
    fields: Fields,
    /// The name in lower case; `None` if no field has it.
    name: Option<Vec<u8>>,
    value: Vec<u8>,
}

/// Where the next byte is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    FirstLine,
    Line,
    /// After a carriage return at the begin of a line.
    EmptyLine,
    Name,
    /// In a value, which has begun if `is_blank` is false.
    Value {
        is_blank: bool,
    },
    /// After a carriage return in a value.
    EndOfLine,
}

impl FieldParser {
    /// Parses further bytes, and returns how many of them belong to the fields, and whether they are
    /// complete.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Result<(usize, bool), Reason> {
        for (index, byte) in bytes.iter().enumerate() {
            if self.next(*byte)? {
                return Ok((index + 1, true));
            }
        }
        Ok((bytes.len(), false))
    }

    pub(super) fn take(&mut self) -> Fields {
        std::mem::take(&mut self.fields)
    }

    /// Returns true at the end of the fields.
    fn next(&mut self, byte: u8) -> Result<bool, Reason> {
        self.place = match (self.place, byte) {
            (Place::FirstLine, b' ' | b'\t') => return Err(Reason::Protocol),
            (Place::Line, b' ' | b'\t') => {
                self.push(b' ')?;
                Place::Value { is_blank: true }
            }
            (Place::FirstLine | Place::Line, b'\n') | (Place::EmptyLine, b'\n') => {
                self.end_field();
                return Ok(true);
            }
            (Place::FirstLine | Place::Line, b'\r') => Place::EmptyLine,
            (Place::EmptyLine, _) => return Err(Reason::Protocol),
            (Place::FirstLine | Place::Line, b':') => return Err(Reason::Protocol),
            (Place::FirstLine | Place::Line, byte) => {
                self.end_field();
                self.name = Some(Vec::new());
                self.push_to_name(byte)?;
                Place::Name
            }
            (Place::Name, b':') => Place::Value { is_blank: true },
            (Place::Name, byte) => {
                self.push_to_name(byte)?;
                Place::Name
            }
            (Place::Value { .. } | Place::EndOfLine, b'\n') => {
                self.trim_end();
                Place::Line
            }
            (Place::EndOfLine, _) => return Err(Reason::Protocol),
            (Place::Value { .. }, b'\r') => Place::EndOfLine,
            (Place::Value { is_blank: true }, b' ' | b'\t') => Place::Value { is_blank: true },
            (Place::Value { .. }, byte) if byte != b'\t' && byte.is_ascii_control() => {
                return Err(Reason::Protocol);
            }
            (Place::Value { .. }, byte) => {
                self.push(byte)?;
                Place::Value { is_blank: false }
            }
        };
        Ok(false)
    }

    fn push_to_name(&mut self, byte: u8) -> Result<(), Reason> {
        let is_token = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if !is_token && byte != b' ' {
            return Err(Reason::Protocol);
        }
        if let Some(name) = self.name.as_mut().filter(|name| is_token && name.len() < NAME_BYTES) {
            name.push(byte.to_ascii_lowercase());
        } else {
            self.name = None;
        }
        Ok(())
    }

    fn push(&mut self, byte: u8) -> Result<(), Reason> {
        if self.values().is_none() {
            return Ok(());
        }
        if self.value.len() == VALUE_BYTES {
            return Err(Reason::Protocol);
        }
        self.value.push(byte);
        Ok(())
    }

    fn trim_end(&mut self) {
        let length = self.value.trim_ascii_end().len();
        self.value.truncate(length);
    }

    /// Returns what is kept of values of the current name.
    fn values(&mut self) -> Option<Values<'_>> {
        let fields = &mut self.fields;
        Some(match self.name.as_deref()? {
            b"location" => Values::First(&mut fields.location),
            b"upgrade" => Values::First(&mut fields.upgrade),
            b"content-length" => Values::Different(&mut fields.content_lengths),
            b"transfer-encoding" => Values::Two(&mut fields.transfer_encodings),
            b"trailer" => Values::Names(&mut fields.has_invalid_trailer, &NO_TRAILERS),
            b"connection" => Values::Names(&mut fields.names_upgrade, &UPGRADE),
            _ => return None,
        })
    }

    fn end_field(&mut self) {
        let value = std::mem::take(&mut self.value);
        match self.values() {
            Some(Values::First(first)) => drop(first.get_or_insert(value)),
            Some(Values::Two(two)) if two.len() < 2 => two.push(value),
            Some(Values::Different(two)) if two.len() < 2 => {
                if two.first().is_none_or(|first| first.trim_ascii() != value.trim_ascii()) {
                    two.push(value);
                }
            }
            Some(Values::Names(is_named, names)) => *is_named |= has_element(&value, names),
            Some(Values::Two(_) | Values::Different(_)) | None => {}
        }
        self.name = None;
    }
}

enum Values<'a> {
    First(&'a mut Option<Vec<u8>>),
    Two(&'a mut Vec<Vec<u8>>),
    /// The first one, and the first one that differs.
    Different(&'a mut Vec<Vec<u8>>),
    /// Whether one of the names is an element of a value.
    Names(&'a mut bool, &'static [&'static [u8]]),
}

/// True if the list, with commas, contains one of the names.
fn has_element(list: &[u8], names: &[&[u8]]) -> bool {
    list.split(|byte| *byte == b',')
        .any(|element| names.iter().any(|name| element.trim_ascii().eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests;
