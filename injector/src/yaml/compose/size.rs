//! The size of a value, which an anchor and each of its aliases copy.

use super::{Content, Node};
use crate::yaml::scalar::Scalar;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Values and keys.
    pub(super) nodes: usize,
    /// Bytes of text in values and keys.
    pub(super) bytes: usize,
    /// The levels below the value; 0 for a scalar.
    pub(super) levels_below: usize,
}

impl Size {
    pub(super) fn of(node: &Node) -> Self {
        let mut size = Self { nodes: 1, ..Self::default() };
        match &node.content {
            Content::Scalar(Scalar::Text(text)) => size.bytes += text.len(),
            Content::Scalar(_) => {}
            Content::List(nodes) => nodes.iter().for_each(|node| size.add(Self::of(node))),
            Content::Mapping(entries) => {
                for entry in entries {
                    size.add(Self { nodes: 1, bytes: entry.key.len(), levels_below: 0 });
                    size.add(Self::of(&entry.value));
                }
            }
        }
        size
    }

    /// Adds a value that is contained in this one.
    fn add(&mut self, inner: Self) {
        self.nodes += inner.nodes;
        self.bytes += inner.bytes;
        self.levels_below = self.levels_below.max(inner.levels_below + 1);
    }
}
