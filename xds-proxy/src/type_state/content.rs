//! The content of a response: resources to add, and names to remove.

use bytes::Bytes;

use crate::last_good::{GoodType, StoredResource};
use crate::wire::{DeltaResource, Resource, Response, Variant};

/// Content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) version: String,
    pub(crate) resources: Vec<Resource>,
    pub(crate) removed: Vec<String>,
}

impl From<Response> for Content {
    fn from(response: Response) -> Self {
        let Response { version, resources, removed, .. } = response;
        Self { version, resources, removed }
    }
}

/// Returns the content that delivers stored resources.
pub(crate) fn from_last_good<'a>(
    good: &GoodType,
    resources: impl IntoIterator<Item = (&'a String, &'a StoredResource)>,
) -> Content {
    let resource = |(name, stored): (&String, &StoredResource)| Resource {
        name: name.clone(),
        version: stored.version.clone(),
        any: stored.any.clone(),
        is_storable: true,
    };
    Content {
        version: good.version.clone(),
        resources: resources.into_iter().map(resource).collect(),
        removed: Vec::new(),
    }
}

impl Content {
    /// Returns true if the content is what is stored; all of it if `is_complete`.
    pub(super) fn equals(&self, good: &GoodType, is_complete: bool) -> bool {
        let is_stored =
            |new: &Resource| good.resources.get(&new.name).is_some_and(|stored| stored.any == new.any);
        self.version == good.version
            && (!is_complete || self.resources.len() == good.resources.len())
            && self.resources.iter().all(is_stored)
    }

    /// Applies the content to the stored resources, and replaces all of them if `is_complete`. The
    /// bytes are copied, because a small resource must not keep a whole response in memory.
    pub(super) fn apply(self, good: &mut GoodType, is_complete: bool) {
        if is_complete {
            good.resources.clear();
        }
        for name in &self.removed {
            good.resources.remove(name);
        }
        for new in self.resources {
            if new.is_storable {
                let stored = StoredResource { version: new.version, any: Bytes::copy_from_slice(&new.any) };
                good.resources.insert(new.name, stored);
            } else {
                good.resources.remove(&new.name);
            }
        }
        good.version = self.version;
    }

    /// Encodes the content as a response without a nonce.
    pub(crate) fn encode(&self, type_url: &str, variant: Variant) -> Bytes {
        match variant {
            Variant::Sotw => {
                Response::sotw(type_url, &self.version, self.resources.iter().map(|resource| &*resource.any))
            }
            Variant::Delta => {
                let resources = self
                    .resources
                    .iter()
                    .map(|Resource { name, version, any, .. }| DeltaResource { name, version, any });
                Response::delta(type_url, &self.version, resources)
            }
        }
    }
}
