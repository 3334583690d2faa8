//! Bytes written as text: each character below U+0100 stands for the byte of that number, so that
//! `"\xff"` in YAML is one byte and ASCII text stands for itself.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Returns the bytes that `text` stands for.
    ///
    /// # Errors
    /// Names the first character that is not a byte.
    pub fn of(text: &str) -> Result<Self, String> {
        let byte = |character: char| {
            u8::try_from(u32::from(character))
                .map_err(|_| format!("{character:?} is not one byte: write \\x.."))
        };
        text.chars().map(byte).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the text that stands for these bytes.
    pub fn text(&self) -> String {
        self.0.iter().copied().map(char::from).collect()
    }

    /// Returns the bytes with every `{name}` replaced.
    #[must_use]
    pub fn filled(&self, placeholders: &[(String, String)]) -> Vec<u8> {
        fill(&self.text(), placeholders)
            .chars()
            .map(|character| u8::try_from(character).unwrap_or(b'?'))
            .collect()
    }
}

/// Replaces every `{name}` in `text` by its value in `placeholders`.
pub fn fill(text: &str, placeholders: &[(String, String)]) -> String {
    placeholders
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

impl From<&str> for Bytes {
    /// Converts Latin-1 text; every other character becomes `?`.
    fn from(text: &str) -> Self {
        Self(text.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
