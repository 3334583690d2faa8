//! The last good configuration: the resources that Envoy has accepted, and their file format.
//!
//! A file is a line with the format's name, a SHA-256 checksum of the rest, and the rest: a protobuf
//! message with the node's identity and the resources of each type.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use xds::{Malformed, bytes_size, put_bytes, put_key, type_url};

const FORMAT: &[u8] = b"app-health xDS cache 1\n";
const CHECKSUM_LENGTH: usize = 32;

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
    resources: BTreeMap<String, StoredResource>,
    /// Size of the resources with their names and versions, in bytes.
    size: usize,
    /// Size of the message that resources are parts of, in bytes; 0 if they have memory of their own.
    message_size: usize,
}

/// The accepted resources of all types, by type URL. A copy shares the resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastGood(pub BTreeMap<String, Arc<GoodType>>);

fn size_of(name: &str, stored: &StoredResource) -> usize {
    name.len() + stored.version.len() + stored.any.len()
}

impl GoodType {
    pub fn resources(&self) -> &BTreeMap<String, StoredResource> {
        &self.resources
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.size + self.version.len()
    }

    pub(crate) fn insert(&mut self, name: String, stored: StoredResource) {
        self.remove(&name);
        self.size += size_of(&name, &stored);
        self.resources.insert(name, stored);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(stored) = self.resources.remove(name) {
            self.size -= size_of(name, &stored);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.resources.clear();
        (self.size, self.message_size) = (0, 0);
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.resources.retain(|name, _| is_kept(name));
        self.size = self.resources.iter().map(|(name, stored)| size_of(name, stored)).sum();
        self.release_message();
    }

    /// Records that all resources are parts of a message of this size, and of no other.
    pub(crate) fn share_message(&mut self, size: usize) {
        self.message_size = size;
        self.release_message();
    }

    /// Gives the resources memory of their own if they are less than half of the message that they keep in
    /// memory.
    pub(crate) fn release_message(&mut self) {
        if self.message_size / 2 <= self.size {
            return;
        }
        for stored in self.resources.values_mut() {
            stored.any = Bytes::copy_from_slice(&stored.any);
        }
        self.message_size = 0;
    }

    /// Returns the size of the encoded type in bytes.
    fn encoded_size(&self, type_url: &str) -> usize {
        let resources = self
            .resources
            .iter()
            .map(|(name, stored)| bytes_size(resource_size(name, stored)))
            .sum::<usize>();
        bytes_size(type_url.len()) + bytes_size(self.version.len()) + resources
    }
}

/// Returns the size of an encoded resource in bytes.
fn resource_size(name: &str, stored: &StoredResource) -> usize {
    [name.len(), stored.version.len(), stored.any.len()].map(bytes_size).iter().sum()
}

impl LastGood {
    /// Returns the size of all resources in bytes.
    pub fn size(&self) -> usize {
        self.0.values().map(|good| good.size()).sum()
    }

    /// Encodes the file, in parts that share the memory of the resources. Secrets are left out.
    pub fn encode(&self, identity: &str) -> Vec<Bytes> {
        let (mut parts, mut head) = (vec![Bytes::new()], BytesMut::new());
        put_bytes(&mut head, 1, identity.as_bytes());
        for (type_url, good) in self.0.iter().filter(|(type_url, _)| *type_url != type_url::SECRET) {
            put_key(&mut head, 2, good.encoded_size(type_url));
            put_bytes(&mut head, 1, type_url.as_bytes());
            put_bytes(&mut head, 2, good.version.as_bytes());
            for (name, stored) in &good.resources {
                put_key(&mut head, 3, resource_size(name, stored));
                put_bytes(&mut head, 1, name.as_bytes());
                put_bytes(&mut head, 2, stored.version.as_bytes());
                put_key(&mut head, 3, stored.any.len());
                parts.extend([head.split().freeze(), stored.any.clone()]);
            }
        }
        parts.push(head.freeze());
        let mut checksum = Sha256::new();
        parts.iter().for_each(|part| checksum.update(part));
        if let Some(first) = parts.first_mut() {
            *first = [FORMAT, &checksum.finalize()].concat().into();
        }
        parts
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
        for field in xds::fields(&content) {
            let field = field?;
            match field.number {
                1 => owner = field.text()?,
                2 => {
                    let (type_url, good) = good_type(&field.bytes()?)?;
                    types.insert(type_url, Arc::new(good));
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

fn good_type(message: &Bytes) -> Result<(String, GoodType), Malformed> {
    let (mut type_url, mut good) = (String::new(), GoodType::default());
    for field in xds::fields(message) {
        let field = field?;
        match field.number {
            1 => type_url = field.text()?,
            2 => good.version = field.text()?,
            3 => {
                let (name, stored) = stored_resource(&field.bytes()?)?;
                good.insert(name, stored);
            }
            _ => {}
        }
    }
    Ok((type_url, good))
}

fn stored_resource(message: &Bytes) -> Result<(String, StoredResource), Malformed> {
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

#[cfg(test)]
mod tests;
