//! The fields of a protobuf message.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

/// Bytes that are not a protobuf message of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid protobuf message: {0}")]
pub struct Malformed(pub(crate) &'static str);

/// One field of a message.
pub struct Field<'a> {
    message: &'a Bytes,
    pub number: u64,
    /// Where key and content are.
    raw: Range<usize>,
    content: Content,
}

/// The content of a field.
enum Content {
    /// A varint, or the bits of a fixed number.
    Number(u64),
    /// Where a string or a message is.
    Bytes(Range<usize>),
}

impl<'a> Field<'a> {
    /// Returns key and content as received.
    pub fn raw(&self) -> &'a [u8] {
        self.message.get(self.raw.clone()).unwrap_or_default()
    }

    /// Returns the content as a message or a byte string, which shares the memory of the message.
    pub fn bytes(&self) -> Result<Bytes, Malformed> {
        Ok(self.message.slice(self.range()?))
    }

    /// Returns the content as text.
    pub fn text(&self) -> Result<String, Malformed> {
        let content = self.message.get(self.range()?).unwrap_or_default();
        let text = std::str::from_utf8(content).map_err(|_| Malformed("a string that is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Returns a varint, or the bits of a fixed number.
    pub fn integer(&self) -> Result<u64, Malformed> {
        match self.content {
            Content::Number(number) => Ok(number),
            Content::Bytes(_) => Err(Malformed("a string or message instead of a number")),
        }
    }

    fn range(&self) -> Result<Range<usize>, Malformed> {
        match &self.content {
            Content::Bytes(range) => Ok(range.clone()),
            Content::Number(_) => Err(Malformed("a number instead of a string or message")),
        }
    }
}

/// Returns the fields of a message in their order.
pub fn fields(message: &Bytes) -> impl Iterator<Item = Result<Field<'_>, Malformed>> {
    let mut rest: &[u8] = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next(message, &mut rest);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn next<'a>(message: &'a Bytes, rest: &mut &'a [u8]) -> Result<Field<'a>, Malformed> {
    const INCOMPLETE: Malformed = Malformed("an incomplete field");
    let varint = |rest: &mut &[u8]| decode_varint(rest).map_err(|_| Malformed("an incomplete number"));
    let start = message.len() - rest.len();
    let key = varint(rest)?;
    let content = match key & 7 {
        0 => Content::Number(varint(rest)?),
        1 => {
            let (bits, after) = rest.split_first_chunk().ok_or(INCOMPLETE)?;
            *rest = after;
            Content::Number(u64::from_le_bytes(*bits))
        }
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| INCOMPLETE)?;
            let at = message.len() - rest.len();
            (_, *rest) = rest.split_at_checked(length).ok_or(INCOMPLETE)?;
            Content::Bytes(at..at + length)
        }
        5 => {
            let (bits, after) = rest.split_first_chunk().ok_or(INCOMPLETE)?;
            *rest = after;
            Content::Number(u32::from_le_bytes(*bits).into())
        }
        _ => return Err(Malformed("an unknown wire type")),
    };
    Ok(Field { message, number: key >> 3, raw: start..message.len() - rest.len(), content })
}

/// Appends a string, byte or message field.
pub fn put_bytes(to: &mut BytesMut, number: u64, content: &[u8]) {
    put_key(to, number, content.len());
    to.put_slice(content);
}

/// Like [`put_bytes`], unless the content is empty, which protobuf does not write.
pub(crate) fn put_nonempty(to: &mut BytesMut, number: u64, content: &[u8]) {
    if !content.is_empty() {
        put_bytes(to, number, content);
    }
}

/// Appends an enum, integer or bool field.
pub fn put_integer(to: &mut BytesMut, number: u64, content: u64) {
    encode_varint(number << 3, to);
    encode_varint(content, to);
}

/// Appends a field of the type `double`.
pub(crate) fn put_double(to: &mut BytesMut, number: u64, content: f64) {
    encode_varint(number << 3 | 1, to);
    to.put_f64_le(content);
}

/// Appends the key and the length of a string, byte or message field.
pub fn put_key(to: &mut BytesMut, number: u64, length: usize) {
    encode_varint(number << 3 | 2, to);
    encode_varint(length.try_into().unwrap_or(u64::MAX), to);
}

/// Returns the size that [`put_bytes`] appends for a content of this length and a number below 16.
pub fn bytes_size(length: usize) -> usize {
    1 + encoded_len_varint(length.try_into().unwrap_or(u64::MAX)) + length
}
