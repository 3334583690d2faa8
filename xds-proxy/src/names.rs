//! Names, and how much memory they take.

use std::collections::BTreeSet;

/// Size of an entry besides its text, in bytes: a string, and its part of the tree.
const ENTRY: usize = 48;

/// A set of names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: BTreeSet<String>,
    size: usize,
}

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the size in memory in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(crate) fn insert(&mut self, name: String) {
        let size = ENTRY + name.len();
        if self.names.insert(name) {
            self.size += size;
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if self.names.remove(name) {
            self.size -= ENTRY + name.len();
        }
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.names.retain(|name| is_kept(name));
        self.size = self.names.iter().map(|name| ENTRY + name.len()).sum();
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Extend<String> for Names {
    fn extend<T: IntoIterator<Item = String>>(&mut self, names: T) {
        names.into_iter().for_each(|name| self.insert(name));
    }
}

impl FromIterator<String> for Names {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        let mut set = Self::default();
        set.extend(names);
        set
    }
}

#[cfg(test)]
mod tests;
