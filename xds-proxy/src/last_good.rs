//! The last good configuration: the resources that Envoy has accepted, and their file format.
//!
//! A file is a line with the format's name, a SHA-256 checksum of the rest, and the rest: a protobuf
//! message with the node's identity and the resources of each type.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};

use crate::wire::{self, Malformed, put_bytes};

const FORMAT: &[u8] = b"app-health xDS cache 1\n";
const CHECKSUM_LENGTH: usize = 32;
/// Maximum size of all stored resources together, in bytes.
const SIZE_LIMIT: usize = 64 << 20;

/// Why a stored configuration is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    #[error("damaged: {0}")]
    Damaged(&'static str),
    #[error("damaged: {0}")]
    Malformed(#[from] Malformed),
    #[error("it belongs to another node: {0:?}")]
    Foreign(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResource {
    /// Version of the resource; in state of the world it is empty.
    pub version: String,
    /// The encoded `google.protobuf.Any`.
    pub any: Bytes,
}

/// The accepted resources of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoodType {
    /// Version of the last accepted response.
    pub version: String,
    pub resources: BTreeMap<String, StoredResource>,
}

/// The accepted resources of all types, by type URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastGood(pub BTreeMap<String, GoodType>);

impl GoodType {
    pub(crate) fn size(&self) -> usize {
        let size =
            |(name, stored): (&String, &StoredResource)| name.len() + stored.version.len() + stored.any.len();
        self.resources.iter().map(size).sum()
    }
}

impl LastGood {
    /// Returns the size of all resources in bytes.
    pub fn size(&self) -> usize {
        self.0.values().map(GoodType::size).sum()
    }

    /// Returns true if the resources exceed the size limit.
    pub fn is_too_large(&self) -> bool {
        self.size() > SIZE_LIMIT
    }

    /// Encodes the file. Secrets are left out.
    pub fn encode(&self, identity: &str) -> Vec<u8> {
        let mut content = BytesMut::with_capacity(self.size() + 1024);
        put_bytes(&mut content, 1, identity.as_bytes());
        for (type_url, good) in self.0.iter().filter(|(type_url, _)| *type_url != wire::SECRET) {
            let mut one = BytesMut::with_capacity(good.size() + 256);
            put_bytes(&mut one, 1, type_url.as_bytes());
            put_bytes(&mut one, 2, good.version.as_bytes());
            for (name, stored) in &good.resources {
                let mut resource = BytesMut::with_capacity(stored.any.len() + 256);
                put_bytes(&mut resource, 1, name.as_bytes());
                put_bytes(&mut resource, 2, stored.version.as_bytes());
                put_bytes(&mut resource, 3, &stored.any);
                put_bytes(&mut one, 3, &resource);
            }
            put_bytes(&mut content, 2, &one);
        }
        [FORMAT, &Sha256::digest(&content), &content].concat()
    }

    /// Decodes a file.
    ///
    /// # Errors
    /// Returns why the file must be ignored: it is damaged, or it belongs to another node.
    pub fn decode(file: Vec<u8>, identity: &str) -> Result<Self, CacheError> {
        let mut rest = Bytes::from(file);
        if !rest.starts_with(FORMAT) {
            return Err(CacheError::Damaged("not a file of this format"));
        }
        let mut rest = rest.split_off(FORMAT.len());
        if rest.len() < CHECKSUM_LENGTH {
            return Err(CacheError::Damaged("incomplete"));
        }
        let content = rest.split_off(CHECKSUM_LENGTH);
        if Sha256::digest(&content).as_slice() != rest {
            return Err(CacheError::Damaged("the checksum differs"));
        }
        let (mut owner, mut types) = (String::new(), BTreeMap::new());
        for field in wire::fields(&content) {
            let field = field?;
            match field.number {
                1 => owner = field.text()?,
                2 => types.extend([good_type(&field.bytes()?)?]),
                _ => {}
            }
        }
        if owner != identity {
            return Err(CacheError::Foreign(owner));
        }
        Ok(Self(types))
    }
}

fn good_type(message: &Bytes) -> Result<(String, GoodType), Malformed> {
    let (mut type_url, mut good) = (String::new(), GoodType::default());
    for field in wire::fields(message) {
        let field = field?;
        match field.number {
            1 => type_url = field.text()?,
            2 => good.version = field.text()?,
            3 => good.resources.extend([stored_resource(&field.bytes()?)?]),
            _ => {}
        }
    }
    Ok((type_url, good))
}

fn stored_resource(message: &Bytes) -> Result<(String, StoredResource), Malformed> {
    let mut name = String::new();
    let mut stored = StoredResource { version: String::new(), any: Bytes::new() };
    for field in wire::fields(message) {
        let field = field?;
        match field.number {
            1 => name = field.text()?,
            2 => stored.version = field.text()?,
            3 => stored.any = field.bytes()?,
            _ => {}
        }
    }
    Ok((name, stored))
}

#[cfg(test)]
mod tests;
