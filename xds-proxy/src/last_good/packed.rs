//! The resources of one type, compressed: those of a mesh with many services repeat themselves.

use bytes::{Bytes, BytesMut};
use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, compress_to_output, create_comp_flags_from_zip_params,
};
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use xds::{ITEM_LIMIT, bytes_size, put_bytes, put_key};

use super::StoredResource;
use super::cache_error::CacheError;

/// The usual level of deflate: a configuration is compressed seldom, and kept for long.
const LEVEL: i32 = 6;

/// A protobuf message with resources, in the format deflate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    /// Size of the message in bytes.
    pub(super) size: usize,
    pub(super) deflate: Bytes,
}

/// The content of a [`Packed`], or a type in an uncompressed file.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// Only in an uncompressed file.
    pub(super) type_url: String,
    /// Only in an uncompressed file.
    pub(super) version: String,
    /// In the order of their names.
    pub(super) resources: Vec<(String, StoredResource)>,
}

impl Packed {
    pub(super) fn pack(resources: &[(String, StoredResource)]) -> Self {
        let mut writer = Writer::new();
        let mut head = BytesMut::new();
        for (name, StoredResource { version, any }) in resources {
            put_key(&mut head, 3, [name.len(), version.len(), any.len()].map(bytes_size).iter().sum());
            put_bytes(&mut head, 1, name.as_bytes());
            put_bytes(&mut head, 2, version.as_bytes());
            put_key(&mut head, 3, any.len());
            writer.write(&head);
            writer.write(any);
            head.clear();
        }
        writer.finish()
    }

    /// # Errors
    /// If this was read from a file, and is damaged.
    pub(super) fn unpack(&self) -> Result<Unpacked, CacheError> {
        match decompress_to_vec_with_limit(&self.deflate, self.size) {
            Ok(message) if message.len() == self.size => Unpacked::parse(&message.into()),
            _ => Err(CacheError::Damaged("cannot be decompressed")),
        }
    }
}

impl Unpacked {
    pub(super) fn parse(message: &Bytes) -> Result<Self, CacheError> {
        let mut found = Self::default();
        for field in xds::fields(message) {
            let field = field?;
            match field.number {
                1 => found.type_url = field.text()?,
                2 => found.version = field.text()?,
                3 if found.resources.len() >= ITEM_LIMIT => {
                    return Err(CacheError::Damaged("more than 100,000 resources of one type"));
                }
                3 => found.resources.push(stored_resource(&field.bytes()?)?),
                _ => {}
            }
        }
        // They are looked up by their names.
        match found.resources.is_sorted_by(|(name, _), (next, _)| name < next) {
            true => Ok(found),
            false => Err(CacheError::Damaged("names are not in order")),
        }
    }
}

fn stored_resource(message: &Bytes) -> Result<(String, StoredResource), CacheError> {
    let mut name = String::new();
    let mut stored = StoredResource { version: String::new(), any: Bytes::new() };
    for field in xds::fields(message) {
        let field = field?;
        match field.number {
            1 => name = field.text()?,
            2 => stored.version = field.text()?,
            3 => stored.any = field.bytes()?,
            _ => {}
        }
    }
    // Envoy would end its stream because of a response that is malformed.
    xds::parse_any(&stored.any)?;
    Ok((name, stored))
}

/// Compresses a message that is written in parts.
struct Writer {
    compressor: Box<CompressorOxide>,
    size: usize,
    deflate: Vec<u8>,
}

impl Writer {
    fn new() -> Self {
        let compressor = CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, 0, 0));
        Self { compressor: Box::new(compressor), size: 0, deflate: Vec::new() }
    }

    fn write(&mut self, part: &[u8]) {
        self.size += part.len();
        self.compress(part, TDEFLFlush::None);
    }

    fn finish(mut self) -> Packed {
        self.compress(&[], TDEFLFlush::Finish);
        Packed { size: self.size, deflate: self.deflate.into_boxed_slice().into() }
    }

    fn compress(&mut self, part: &[u8], flush: TDEFLFlush) {
        // It can only fail if the output cannot be written.
        let _ = compress_to_output(&mut self.compressor, part, flush, |output| {
            self.deflate.extend_from_slice(output);
            true
        });
    }
}

#[cfg(test)]
mod tests;
