//! Names with versions, and how much memory they take.

use std::collections::BTreeMap;

/// Size of an entry besides its texts, in bytes: two strings.
const ENTRY: usize = 48;

/// Names, each with a version, which is empty if the map is used as a set.
#[derive(Debug, Default)]
pub(crate) struct Names {
    versions: BTreeMap<String, String>,
    size: usize,
}

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.versions.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Returns the size in memory in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.versions.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.versions.get(name).map(String::as_str)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.versions.keys().map(String::as_str)
    }

    pub(crate) fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    pub(crate) fn insert(&mut self, name: String, version: String) {
        self.remove(&name);
        self.size += ENTRY + name.len() + version.len();
        self.versions.insert(name, version);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(version) = self.versions.remove(name) {
            self.size -= ENTRY + name.len() + version.len();
        }
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.versions.retain(|name, _| is_kept(name));
        self.size = self.versions.iter().map(|(name, version)| ENTRY + name.len() + version.len()).sum();
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Extend<(String, String)> for Names {
    fn extend<T: IntoIterator<Item = (String, String)>>(&mut self, entries: T) {
        for (name, version) in entries {
            self.insert(name, version);
        }
    }
}

impl FromIterator<String> for Names {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        let mut set = Self::default();
        set.extend(names.into_iter().map(|name| (name, String::new())));
        set
    }
}
