//! PURE. The objects of one kind, the newest version of each that was seen: by the watch, or in the answer to a write of ours, whichever
//! is ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::object;
use discovery::objects::Key;

/// Objects by name.
#[derive(Debug, Default)]
pub struct Objects {
    known: BTreeMap<Key, Arc<Value>>,
    /// Deleted by ourselves: what the watch still says of them is old.
    buried: BTreeSet<String>,
}

/// Whether `object` is older than `known`, or the same. Versions are numbers that grow; what is no number is taken for newer.
fn is_old(known: &Value, object: &Value) -> bool {
    let number = |value| object::version(value).and_then(|version| version.parse::<u64>().ok());
    matches!((number(known), number(object)), (Some(known), Some(new)) if new <= known)
}

impl Objects {
    /// The newest version, if there is one.
    pub fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.known.get(key)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.known.iter()
    }

    /// Takes an object in; whether that was news.
    pub fn put(&mut self, key: &Key, object: Value) -> bool {
        let buried = object::uid(&object).is_some_and(|uid| self.buried.contains(uid));
        if buried || self.known.get(key).is_some_and(|known| is_old(known, &object)) {
            return false;
        }
        self.known.insert(key.clone(), Arc::new(object));
        true
    }

    /// An object is gone, and `last` is how it was seen last; whether that was news. One that was made anew since stays.
    pub fn gone(&mut self, key: &Key, last: &Value) -> bool {
        if let Some(uid) = object::uid(last) {
            self.buried.remove(uid);
        }
        if self.known.get(key).is_none_or(|known| object::uid(known) != object::uid(last)) {
            return false;
        }
        self.known.remove(key).is_some()
    }

    /// We deleted it, or read that it is not there.
    pub fn bury(&mut self, key: &Key) {
        if let Some(uid) = self.known.remove(key).as_deref().and_then(object::uid) {
            self.buried.insert(uid.to_owned());
        }
    }

    /// A list is complete, of all namespaces or of one: what is known there and was not listed. It was deleted unseen, or made after the
    /// list.
    pub fn missing(&self, namespace: Option<&str>, listed: &BTreeSet<Key>) -> Vec<Key> {
        let in_scope = |key: &&Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        self.known.keys().filter(in_scope).filter(|key| !listed.contains(*key)).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
