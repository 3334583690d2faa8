//! The entries of a mapping: rejects duplicate keys, and merges `<<`.

use std::collections::HashMap;

use granit_parser::Span;

use super::{Content, Entry, error_at};
use crate::yaml::YamlError;

/// The entries of a mapping, with the index of each key.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) list: Vec<Entry>,
    index: HashMap<String, usize>,
}

impl Entries {
    pub(super) fn insert(&mut self, entry: Entry, span: &Span) -> Result<(), YamlError> {
        let Some(index) = self.index.get(&entry.key) else {
            self.index.insert(entry.key.clone(), self.list.len());
            self.list.push(entry);
            return Ok(());
        };
        let known = &mut self.list[*index];
        let is_duplicate = !entry.is_merged && !known.is_merged;
        // Of two keys with different types, kubectl chooses one at random.
        if is_duplicate || known.key_type != entry.key_type {
            return Err(error_at(span, format!("duplicate mapping key: {}", entry.key)));
        }
        // kubectl uses the last one, be it merged or not.
        let is_merged = known.is_merged && entry.is_merged;
        *known = Entry { is_merged, ..entry };
        Ok(())
    }

    pub(super) fn merge(&mut self, content: Content, span: &Span) -> Result<(), YamlError> {
        let mappings = match content {
            Content::Mapping(entries) => vec![entries],
            // The first mapping of a list has precedence.
            Content::List(nodes) => nodes
                .into_iter()
                .rev()
                .map(|node| match node.content {
                    Content::Mapping(entries) => Ok(entries),
                    _ => Err(not_mergeable(span)),
                })
                .collect::<Result<_, _>>()?,
            Content::Scalar(_) => return Err(not_mergeable(span)),
        };
        for entry in mappings.into_iter().flatten() {
            self.insert(Entry { is_merged: true, ..entry }, span)?;
        }
        Ok(())
    }
}

fn not_mergeable(span: &Span) -> YamlError {
    error_at(span, "the value of << must be a mapping or a list of mappings")
}
