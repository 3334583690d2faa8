//! The items of a list that are left as they are, while the other items are injected and linted.

use std::fmt;

use serde_json::Value;

use super::{Skip, of_object, unknown_kind};
use crate::kinds::Kinds;
use crate::workload::{self, MalformedObject, PodLocation};

/// An item of a list, or a Pod template, that is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedItem {
    /// The path of the item in the document, such as `items[3]`.
    pub field: String,
    /// The kind and name of the item, such as `Deployment/shop`.
    pub object: String,
    pub reason: Skip,
}

impl fmt::Display for SkippedItem {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.field, self.object, self.reason)
    }
}

/// The Pods of a manifest that are injected and linted.
#[derive(Clone, Debug, Default)]
pub struct ManifestPods {
    pub pods: Vec<Result<PodLocation, MalformedObject>>,
    /// The items of a list and the Pod templates whose Pods are not among them.
    pub skipped: Vec<SkippedItem>,
}

impl ManifestPods {
    /// Returns the Pods of a document that [`Skip::of`] does not skip.
    pub fn of(document: &Value, kinds: &Kinds) -> Self {
        let mut found = Self::default();
        for object in workload::objects_of(document, kinds) {
            let object = match object {
                Ok(object) => object,
                Err(malformed) => {
                    found.pods.push(Err(malformed));
                    continue;
                }
            };
            match of_object(&object, kinds).filter(|_| object.is_item()) {
                None => {
                    found.pods.extend(object.pods(kinds));
                    found.skipped.extend(unnamed(&object, kinds));
                }
                Some(reason) => found.skipped.push(SkippedItem {
                    field: object.field(""),
                    object: object.location().object,
                    reason,
                }),
            }
        }
        found
    }
}

/// Returns the Pod templates of an object beside those that flags name.
fn unnamed(object: &workload::Object, kinds: &Kinds) -> Vec<SkippedItem> {
    let named: Vec<String> = object.templates(kinds).iter().filter_map(|kind| kind.named()).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let skipped = unknown_kind::unnamed(object, &named).into_iter();
    let item = |(field, reason)| SkippedItem { field, object: object.location().object, reason };
    skipped.map(item).collect()
}
