//! HPACK (RFC 7541), with the rules and limits of Go's decoder (`golang.org/x/net/http2/hpack`).

use std::collections::VecDeque;

use bytes::Bytes;

use super::huffman;
use super::static_table::STATIC_TABLE;

/// The size of the dynamic table, which no setting of ours raises.
const TABLE_BYTES: usize = 4096;
/// What RFC 7541 adds to the size of each entry.
pub(super) const ENTRY_BYTES: usize = 32;

/// The name and the value of a field.
pub(super) type Field = (Bytes, Bytes);

/// The header block cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadBlock;

/// Decodes the header blocks of a connection.
#[derive(Debug)]
pub(super) struct Decoder {
    /// The newest entry is the first one.
    table: VecDeque<Field>,
    size: usize,
    max_size: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { table: VecDeque::new(), size: 0, max_size: TABLE_BYTES }
    }
}

impl Decoder {
    /// Decodes a block.
    pub(super) fn decode(&mut self, mut block: &[u8], mut emit: impl FnMut(Field)) -> Result<(), BadBlock> {
        let mut is_first = true;
        while let Some(byte) = block.first() {
            match byte.leading_zeros() {
                0 => emit(self.get(integer(&mut block, 7)?)?),
                1 => {
                    let field = self.literal(&mut block, 6)?;
                    self.add(field.clone());
                    emit(field);
                }
                2 => self.resize(integer(&mut block, 5)?, is_first)?,
                _ => emit(self.literal(&mut block, 4)?),
            }
            is_first = false;
        }
        Ok(())
    }

    fn get(&self, index: usize) -> Result<Field, BadBlock> {
        let index = index.checked_sub(1).ok_or(BadBlock)?;
        match STATIC_TABLE.get(index) {
            Some((name, value)) => {
                Ok((Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes())))
            }
            None => self.table.get(index - STATIC_TABLE.len()).cloned().ok_or(BadBlock),
        }
    }

    fn literal(&self, block: &mut &[u8], prefix: u32) -> Result<Field, BadBlock> {
        let name = match integer(block, prefix)? {
            0 => string(block)?,
            index => self.get(index)?.0,
        };
        Ok((name, string(block)?))
    }

    /// Go accepts it within a block, too, while the table is empty.
    fn resize(&mut self, size: usize, is_first: bool) -> Result<(), BadBlock> {
        if size > TABLE_BYTES || !(is_first || self.size == 0) {
            return Err(BadBlock);
        }
        self.max_size = size;
        self.evict();
        Ok(())
    }

    fn add(&mut self, field: Field) {
        self.size += size(&field);
        self.table.push_front(field);
        self.evict();
    }

    fn evict(&mut self) {
        while self.size > self.max_size
            && let Some(oldest) = self.table.pop_back()
        {
            self.size -= size(&oldest);
        }
    }
}

/// Returns the size of a field as HTTP/2 counts it.
pub(super) fn size((name, value): &Field) -> usize {
    name.len() + value.len() + ENTRY_BYTES
}

/// Reads an integer whose first byte has `prefix` bits for it.
fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, BadBlock> {
    let (first, mut rest) = block.split_first().ok_or(BadBlock)?;
    let mask = (1u64 << prefix) - 1;
    let mut number = u64::from(*first) & mask;
    if number == mask {
        let mut shift = 0;
        loop {
            let (byte, tail) = rest.split_first().ok_or(BadBlock)?;
            rest = tail;
            number = number.checked_add(u64::from(byte & 0x7f) << shift).ok_or(BadBlock)?;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift >= 63 {
                return Err(BadBlock);
            }
        }
    }
    *block = rest;
    usize::try_from(number).map_err(|_| BadBlock)
}

fn string(block: &mut &[u8]) -> Result<Bytes, BadBlock> {
    let is_huffman = block.first().ok_or(BadBlock)? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (bytes, rest) = block.split_at_checked(length).ok_or(BadBlock)?;
    *block = rest;
    if is_huffman {
        huffman::decode(bytes).map(Bytes::from).ok_or(BadBlock)
    } else {
        Ok(Bytes::copy_from_slice(bytes))
    }
}

/// Appends a field as a literal that no table keeps.
pub(super) fn encode(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    block.push(0);
    for text in [name, value] {
        encode_length(text.len(), block);
        block.extend_from_slice(text);
    }
}

fn encode_length(mut length: usize, block: &mut Vec<u8>) {
    if length < 0x7f {
        return block.push(length as u8);
    }
    block.push(0x7f);
    length -= 0x7f;
    while length >= 0x80 {
        block.push(length as u8 | 0x80);
        length >>= 7;
    }
    block.push(length as u8);
}

#[cfg(test)]
mod tests;
