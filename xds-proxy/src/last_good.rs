//! The last good configuration: the resources that Envoy has accepted.
//!
//! They are needed only while no control plane answers. So the agent keeps them compressed, with a
//! checksum of each, to recognize one that is the same.

mod cache_error;
mod file;
mod packed;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

pub use cache_error::CacheError;
use packed::Packed;

/// Length in bytes of the part of a SHA-256 checksum that tells contents apart.
const DIGEST_LENGTH: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResource {
    /// Version of the resource; in state of the world it is empty.
    pub version: String,
    /// The encoded `google.protobuf.Any`.
    pub any: Bytes,
}

/// What is known of a resource without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    version: Box<str>,
    /// Size of the content in bytes.
    size: usize,
    digest: [u8; DIGEST_LENGTH],
}

/// The accepted resources of one type. Two are equal if their resources are.
#[derive(Debug, Clone, Default)]
pub struct GoodType {
    /// Version of the last accepted response.
    pub version: String,
    entries: BTreeMap<Arc<str>, Entry>,
    /// The contents that have changed since `packed`.
    fresh: BTreeMap<Arc<str>, Bytes>,
    /// Earlier contents. Resources that were removed or replaced since may still be in it.
    packed: Option<Packed>,
    /// True if `packed` has exactly these resources.
    is_packed: bool,
    /// Size of the resources with their names and versions, in bytes.
    size: usize,
}

/// The accepted resources of all types, by type URL. A copy shares the resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastGood(pub BTreeMap<String, Arc<GoodType>>);

impl Entry {
    fn new(version: &str, any: &[u8]) -> Self {
        let mut digest = [0; DIGEST_LENGTH];
        digest.iter_mut().zip(Sha256::digest(any)).for_each(|(byte, of_content)| *byte = of_content);
        Self { version: version.into(), size: any.len(), digest }
    }

    /// Returns the size in bytes of the resource with this name.
    fn size_with(&self, name: &str) -> usize {
        name.len() + self.version.len() + self.size
    }
}

impl PartialEq for GoodType {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && self.entries == other.entries
    }
}

impl Eq for GoodType {}

impl GoodType {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the names of the resources, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|name| &**name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Returns true if there is a resource with this name, version and content.
    pub(crate) fn is_same(&self, name: &str, version: &str, any: &[u8]) -> bool {
        self.entries.get(name).is_some_and(|entry| {
            entry.size == any.len() && *entry.version == *version && *entry == Entry::new(version, any)
        })
    }

    /// Returns the resources with their names, in the order of these. It decompresses all of them.
    pub fn resources(&self) -> Vec<(String, StoredResource)> {
        let is_needed = self.entries.keys().any(|name| !self.fresh.contains_key(name));
        let packed = self.packed.as_ref().filter(|_| is_needed);
        // It was compressed by this process, or decompressed before.
        let packed = packed.and_then(|packed| packed.unpack().ok()).unwrap_or_default().resources;
        let packed = |name: &str| {
            let index = packed.binary_search_by(|(other, _)| other.as_str().cmp(name)).ok()?;
            packed.get(index).map(|(_, stored)| stored.any.clone())
        };
        let resources = self.entries.iter().filter_map(|(name, entry)| {
            let any = self.fresh.get(name).cloned().or_else(|| packed(name))?;
            Some((name.to_string(), StoredResource { version: entry.version.to_string(), any }))
        });
        resources.collect()
    }

    /// Returns the size of the resources in bytes, without compression.
    pub fn size(&self) -> usize {
        self.size + self.version.len()
    }

    /// Adds or replaces a resource. One that is the same stays compressed.
    pub(crate) fn insert(&mut self, name: &str, stored: StoredResource) {
        let entry = Entry::new(&stored.version, &stored.any);
        if self.entries.get(name) == Some(&entry) {
            // The one before may keep a message in memory.
            self.fresh.get_mut(name).into_iter().for_each(|any| *any = stored.any.clone());
            return;
        }
        self.remove(name);
        let name = Arc::<str>::from(name);
        self.size += entry.size_with(&name);
        self.entries.insert(name.clone(), entry);
        self.fresh.insert(name, stored.any);
        self.is_packed = false;
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.size -= entry.size_with(name);
            self.fresh.remove(name);
            self.is_packed = false;
        }
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        let removed: Vec<Arc<str>> = self.entries.keys().filter(|name| !is_kept(name)).cloned().collect();
        removed.iter().for_each(|name| self.remove(name));
    }

    /// Keeps only what tells whether another resource is the same.
    pub(crate) fn forget_contents(&mut self) {
        (self.fresh, self.packed) = (BTreeMap::new(), None);
    }

    /// Returns the same with all contents compressed.
    fn packed(self: &Arc<Self>) -> Arc<Self> {
        if self.is_packed {
            return self.clone();
        }
        let (version, entries) = (self.version.clone(), self.entries.clone());
        let packed = Some(Packed::pack(&self.resources()));
        Arc::new(Self { version, entries, fresh: BTreeMap::new(), packed, is_packed: true, size: self.size })
    }

    /// Takes the compressed contents of an earlier state of this one.
    fn adopt(&mut self, earlier: &Self) {
        self.fresh.retain(|name, _| self.entries.get(name) != earlier.entries.get(name));
        self.packed.clone_from(&earlier.packed);
        self.is_packed = self.entries == earlier.entries;
    }
}

impl LastGood {
    /// Returns the size of all resources in bytes, without compression.
    pub fn size(&self) -> usize {
        self.0.values().map(|good| good.size()).sum()
    }

    /// Returns the same with all contents compressed, which takes too long for the thread of the proxy.
    pub fn packed(&self) -> Self {
        Self(self.0.iter().map(|(type_url, good)| (type_url.clone(), good.packed())).collect())
    }

    /// Takes the compressed contents of an earlier state of this one.
    pub(crate) fn adopt(&mut self, earlier: &Self) {
        for (type_url, good) in &mut self.0 {
            if let Some(earlier) = earlier.0.get(type_url)
                && earlier.is_packed
                && !Arc::ptr_eq(good, earlier)
            {
                Arc::make_mut(good).adopt(earlier);
            }
        }
    }
}

#[cfg(test)]
mod tests;
