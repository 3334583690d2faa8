//! The file of the last good configuration.
//!
//! It is a line with the name of the format, a SHA-256 checksum of the rest, and the rest: a protobuf
//! message with the identity of the node and the compressed resources of each type. It is small, because
//! Istio's volume for it is memory that the container is charged for.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use xds::{put_bytes, put_integer, type_url};

use super::cache_error::CacheError;
use super::packed::{Packed, Unpacked};
use super::{GoodType, LastGood};

const FORMAT: &[u8] = b"app-health xDS cache 2\n";
/// The format of older versions: the same without compression.
const UNCOMPRESSED: &[u8] = b"app-health xDS cache 1\n";
const CHECKSUM_LENGTH: usize = 32;
/// Maximum size of all resources without compression, in bytes.
const SIZE_LIMIT: usize = 80 << 20;

impl LastGood {
    /// Encodes the file. Secrets are left out.
    pub fn encode(&self, identity: &str) -> Vec<u8> {
        let mut content = BytesMut::new();
        put_bytes(&mut content, 1, identity.as_bytes());
        for (type_url, good) in self.0.iter().filter(|(type_url, _)| *type_url != type_url::SECRET) {
            let good = good.packed();
            let mut of_type = BytesMut::new();
            put_bytes(&mut of_type, 1, type_url.as_bytes());
            put_bytes(&mut of_type, 2, good.version.as_bytes());
            if let Some(Packed { size, deflate }) = &good.packed {
                put_integer(&mut of_type, 3, *size as u64);
                put_bytes(&mut of_type, 4, deflate);
            }
            put_bytes(&mut content, 2, &of_type);
        }
        [FORMAT, &Sha256::digest(&content), &content].concat()
    }

    /// Decodes a file, also one of an older version.
    ///
    /// # Errors
    /// Returns why the file must be ignored: it is damaged, or it belongs to another node.
    pub fn decode(file: Vec<u8>, identity: &str) -> Result<Self, CacheError> {
        let file = Bytes::from(file);
        let format = [FORMAT, UNCOMPRESSED].into_iter().find(|format| file.starts_with(format));
        let Some(format) = format else { return Err(CacheError::Damaged("not a file of this format")) };
        let mut checksum = file.slice(format.len()..);
        if checksum.len() < CHECKSUM_LENGTH {
            return Err(CacheError::Damaged("incomplete"));
        }
        let content = checksum.split_off(CHECKSUM_LENGTH);
        if Sha256::digest(&content).as_slice() != checksum {
            return Err(CacheError::Damaged("the checksum differs"));
        }
        let (mut owner, mut types) = (String::new(), BTreeMap::new());
        let mut left = SIZE_LIMIT;
        for field in xds::fields(&content) {
            let field = field?;
            match field.number {
                1 => owner = field.text()?,
                2 if owner != identity => break,
                2 => {
                    let of_type = field.bytes()?;
                    let (type_url, good) = match format {
                        FORMAT => compressed_type(&of_type, &mut left)?,
                        _ => uncompressed_type(&of_type)?,
                    };
                    types.insert(type_url, Arc::new(good).packed());
                }
                _ => {}
            }
        }
        if owner != identity {
            return Err(CacheError::Foreign(owner));
        }
        Ok(Self(types))
    }
}

/// `left` is the maximum size of the resources, which is reduced by that of these.
fn compressed_type(message: &Bytes, left: &mut usize) -> Result<(String, GoodType), CacheError> {
    let (mut type_url, mut version) = (String::new(), String::new());
    let mut packed = Packed { size: 0, deflate: Bytes::new() };
    for field in xds::fields(message) {
        let field = field?;
        match field.number {
            1 => type_url = field.text()?,
            2 => version = field.text()?,
            3 => packed.size = usize::try_from(field.integer()?).unwrap_or(usize::MAX),
            4 => packed.deflate = field.bytes()?,
            _ => {}
        }
    }
    *left = left.checked_sub(packed.size).ok_or(CacheError::Damaged("larger than 80 MiB"))?;
    let mut good = good_type(Unpacked { version, ..packed.unpack()? });
    good.fresh.clear();
    (good.packed, good.is_packed) = (Some(packed), true);
    Ok((type_url, good))
}

fn uncompressed_type(message: &Bytes) -> Result<(String, GoodType), CacheError> {
    let mut unpacked = Unpacked::parse(message)?;
    Ok((std::mem::take(&mut unpacked.type_url), good_type(unpacked)))
}

fn good_type(unpacked: Unpacked) -> GoodType {
    let mut good = GoodType { version: unpacked.version, ..GoodType::default() };
    for (name, stored) in unpacked.resources {
        good.insert(&name, stored);
    }
    good
}

#[cfg(test)]
mod tests;
