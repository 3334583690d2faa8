//! The content of a response: resources to add, and names to remove.

use std::collections::HashSet;

use bytes::Bytes;
use xds::{Resource, ResourceRef, Response, ResponseHead, Variant};

use crate::last_good::{GoodType, StoredResource};

/// Content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) version: String,
    pub(crate) resources: Vec<Resource>,
    pub(crate) removed: Vec<String>,
    /// True if the response contains more than was read.
    pub(crate) is_cut: bool,
}

impl From<Response> for Content {
    fn from(response: Response) -> Self {
        let Response { version, resources, removed, is_cut, .. } = response;
        Self { version, resources, removed, is_cut }
    }
}

/// Returns the content that delivers the stored resources with these names.
pub(crate) fn from_last_good(good: &GoodType, is_wanted: impl Fn(&str) -> bool) -> Content {
    let resources = good.resources().into_iter().filter(|(name, _)| is_wanted(name));
    let resource = |(name, stored): (String, StoredResource)| Resource {
        name,
        version: stored.version,
        // One resource must not keep all of them in memory.
        any: Bytes::copy_from_slice(&stored.any),
        is_storable: true,
    };
    Content {
        version: good.version.clone(),
        resources: resources.map(resource).collect(),
        removed: Vec::new(),
        is_cut: false,
    }
}

impl Content {
    /// Returns the size in memory in bytes, without the resources themselves, which are parts of the
    /// message, or copies of them.
    pub(crate) fn size(&self) -> usize {
        let resource = |new: &Resource| size_of::<Resource>() + new.name.len() + new.version.len();
        let removed = |name: &String| size_of::<String>() + name.len();
        self.resources.iter().map(resource).sum::<usize>() + self.removed.iter().map(removed).sum::<usize>()
    }

    /// Returns the names of the resources, also of those to remove.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        let names = self.resources.iter().map(|resource| &resource.name).chain(&self.removed);
        names.filter(|name| !name.is_empty())
    }

    pub(super) fn forget_resources(&mut self) {
        (self.resources, self.removed) = (Vec::new(), Vec::new());
    }

    /// Returns true if all resources are stored as they are.
    pub(super) fn is_stored(&self, good: &GoodType) -> bool {
        self.resources.iter().all(|new| good.is_same(&new.name, &new.version, &new.any))
    }

    /// Applies the content to the stored resources, and replaces all of them if `is_complete`. Resources
    /// that replace all stored ones stay parts of the message, which a copy would need to have in memory
    /// twice. Others are copied, because a small resource must not keep a whole response in memory.
    pub(super) fn apply(self, good: &mut GoodType, is_complete: bool) {
        let names: HashSet<&str> = self.resources.iter().map(|new| &*new.name).collect();
        if is_complete {
            good.retain(|name| names.contains(name));
        }
        for name in &self.removed {
            good.remove(name);
        }
        let replaces_all = good.names().all(|name| names.contains(name));
        for Resource { name, version, any, is_storable } in self.resources {
            if is_storable {
                let any = if replaces_all { any } else { Bytes::copy_from_slice(&any) };
                good.insert(&name, StoredResource { version, any });
            } else {
                good.remove(&name);
            }
        }
        good.version = self.version;
    }

    /// Encodes the content as a response without a nonce.
    pub(crate) fn encode(&self, type_url: &str, variant: Variant) -> Bytes {
        let resources = self.resources.iter();
        let resources =
            resources.map(|Resource { name, version, any, .. }| ResourceRef { name, version, any });
        ResponseHead { type_url, version: &self.version, nonce: "" }.encode(variant, resources, [])
    }
}

#[cfg(test)]
mod tests;
