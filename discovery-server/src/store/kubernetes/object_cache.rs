//! Keeps the newest seen version of each object of one kind, whether it came from the watch or from
//! the response to one of our writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::object;
use discovery::objects::Key;

#[derive(Debug, Default)]
pub struct ObjectCache {
    known: BTreeMap<Key, Arc<Value>>,
    /// UIDs of objects that we deleted; watch events about them are outdated.
    deleted_uids: BTreeSet<String>,
}

/// True if `object` is not newer than `known`. Versions are compared as increasing numbers; a
/// version that is not a number counts as newer.
fn is_old(known: &Value, object: &Value) -> bool {
    let number = |value| object::version(value).and_then(|version| version.parse::<u64>().ok());
    matches!((number(known), number(object)), (Some(known), Some(new)) if new <= known)
}

impl ObjectCache {
    pub fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.known.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.known.iter()
    }

    /// Stores an object unless it is outdated; returns whether it was stored.
    pub fn upsert(&mut self, key: &Key, object: Value) -> bool {
        let deleted_uids = object::uid(&object).is_some_and(|uid| self.deleted_uids.contains(uid));
        if deleted_uids || self.known.get(key).is_some_and(|known| is_old(known, &object)) {
            return false;
        }
        self.known.insert(key.clone(), Arc::new(object));
        true
    }

    /// Removes a deleted object, of which `last` is the last state; returns whether it was removed.
    /// An object of the same name that was created since is kept.
    pub fn remove(&mut self, key: &Key, last: &Value) -> bool {
        if let Some(uid) = object::uid(last) {
            self.deleted_uids.remove(uid);
        }
        if self.known.get(key).is_none_or(|known| object::uid(known) != object::uid(last)) {
            return false;
        }
        self.known.remove(key).is_some()
    }

    /// Removes an object that we deleted or that a read did not find.
    pub fn remove_deleted(&mut self, key: &Key) {
        if let Some(uid) = self.known.remove(key).as_deref().and_then(object::uid) {
            self.deleted_uids.insert(uid.to_owned());
        }
    }

    /// Returns the known objects that a complete list of the namespace (`None`: of all) does not
    /// contain. Each was deleted without a watch event, or created after the list.
    pub fn missing(&self, namespace: Option<&str>, listed: &BTreeSet<Key>) -> Vec<Key> {
        let in_scope = |key: &&Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        self.known.keys().filter(in_scope).filter(|key| !listed.contains(*key)).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
