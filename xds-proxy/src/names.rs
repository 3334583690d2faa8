//! The names of one resource type, what is known about each of them, and how much memory they take.

use std::collections::BTreeMap;

/// Size of an entry besides its text, in bytes: a string, its marks, and its part of the tree.
const ENTRY: usize = 48;

/// Something that is known about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Envoy subscribes to it.
    Subscribed,
    /// Envoy holds it, in the incremental variant.
    Held,
    /// Its stored resource is what Envoy holds, except for types that are received as whole sets.
    Synced,
    /// Its resource was sent or removed on this stream of Envoy, except for types that are received as whole
    /// sets.
    Delivered,
}

impl Mark {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Names with their marks. A name without marks is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Names {
    marks: BTreeMap<Box<str>, u8>,
    size: usize,
}

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Returns the size in memory in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn has(&self, mark: Mark, name: &str) -> bool {
        self.marks.get(name).is_some_and(|marks| marks & mark.bit() != 0)
    }

    /// Returns the names with a mark, in order.
    pub(crate) fn with(&self, mark: Mark) -> impl Iterator<Item = &str> {
        self.marks.iter().filter(move |(_, marks)| **marks & mark.bit() != 0).map(|(name, _)| &**name)
    }

    pub(crate) fn add(&mut self, mark: Mark, name: &str) {
        if let Some(marks) = self.marks.get_mut(name) {
            *marks |= mark.bit();
        } else {
            self.marks.insert(name.into(), mark.bit());
            self.size += ENTRY + name.len();
        }
    }

    pub(crate) fn remove(&mut self, mark: Mark, name: &str) {
        let Some(marks) = self.marks.get_mut(name) else { return };
        *marks &= !mark.bit();
        if *marks == 0 {
            self.marks.remove(name);
            self.size -= ENTRY + name.len();
        }
    }

    /// Forgets all other names.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.filter(|name, marks| if is_kept(name) { marks } else { 0 });
    }

    /// Removes a mark from all other names.
    pub(crate) fn keep_mark_of(&mut self, mark: Mark, is_kept: impl Fn(&str) -> bool) {
        self.filter(|name, marks| if is_kept(name) { marks } else { marks & !mark.bit() });
    }

    /// Removes all other marks.
    pub(crate) fn keep_mark(&mut self, mark: Mark) {
        self.filter(|_, marks| marks & mark.bit());
    }

    /// Removes the marks that `kept` does not return.
    fn filter(&mut self, kept: impl Fn(&str, u8) -> u8) {
        self.size = 0;
        self.marks.retain(|name, marks| {
            *marks = kept(name, *marks);
            self.size += if *marks == 0 { 0 } else { ENTRY + name.len() };
            *marks != 0
        });
    }
}

#[cfg(test)]
mod tests;
