//! The top-level fields of a protobuf message.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

/// Bytes that are not a protobuf message of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid protobuf message: {0}")]
pub struct Malformed(&'static str);

/// One field of a message.
pub struct Field {
    pub number: u64,
    /// Content of a field with a length; `None` for numbers.
    pub(crate) content: Option<Bytes>,
    /// Key and content as received.
    pub(crate) raw: Bytes,
}

impl Field {
    /// Returns the content as a message or a byte string.
    pub fn bytes(self) -> Result<Bytes, Malformed> {
        self.content.ok_or(Malformed("a number instead of a string or message"))
    }

    /// Returns the content as text.
    pub fn text(self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.into()).map_err(|_| Malformed("a string that is not UTF-8"))
    }
}

/// Returns the fields of a message in their order.
pub fn fields(message: &Bytes) -> impl Iterator<Item = Result<Field, Malformed>> {
    let mut rest = message.clone();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next(&mut rest);
        if field.is_err() {
            rest = Bytes::new();
        }
        Some(field)
    })
}

fn next(rest: &mut Bytes) -> Result<Field, Malformed> {
    let varint = |rest: &mut Bytes| decode_varint(rest).map_err(|_| Malformed("an incomplete number"));
    let before = rest.clone();
    let key = varint(rest)?;
    let fixed = |rest: &mut Bytes, length: usize| {
        (rest.len() >= length).then(|| rest.split_to(length)).ok_or(Malformed("an incomplete field"))
    };
    let content = match key & 7 {
        0 => {
            varint(rest)?;
            None
        }
        1 => fixed(rest, 8).map(|_| None)?,
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| Malformed("an incomplete field"))?;
            Some(fixed(rest, length)?)
        }
        5 => fixed(rest, 4).map(|_| None)?,
        _ => return Err(Malformed("an unknown wire type")),
    };
    let raw = before.slice(..before.len() - rest.remaining());
    Ok(Field { number: key >> 3, content, raw })
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

/// Appends the key and the length of a string, byte or message field.
pub fn put_key(to: &mut BytesMut, number: u64, length: usize) {
    encode_varint(number << 3 | 2, to);
    encode_varint(length.try_into().unwrap_or(u64::MAX), to);
}

/// Returns the size that [`put_bytes`] appends for a content of this length and a number below 16.
pub fn bytes_size(length: usize) -> usize {
    1 + encoded_len_varint(length.try_into().unwrap_or(u64::MAX)) + length
}
