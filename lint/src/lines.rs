//! Finds the lines of fields in the text of a document.

use injector::yaml::{self, Content, Node};

use crate::path::{self, Step};

/// The lines of a document's fields.
pub(crate) struct Lines(Option<Node>);

impl Lines {
    /// Reads a document of a stream, which the injector has parsed already.
    pub(crate) fn read(text: &str) -> Self {
        Self(yaml::tree(text.trim_start_matches('\u{feff}')).ok().flatten())
    }

    /// Returns the line of a field, counted from 1. If the field is absent, this is the line of the
    /// nearest field that contains it.
    pub(crate) fn find(&self, path: &str) -> usize {
        let Some(mut node) = self.0.as_ref() else { return 1 };
        let mut line = node.line;
        for step in path::steps(path) {
            let (found, next) = match (&step, &node.content) {
                (Step::Index(index), Content::List(elements)) => match elements.get(*index) {
                    Some(element) => (element.line, element),
                    None => break,
                },
                (Step::Key(key), Content::Mapping(entries)) => {
                    match entries.iter().find(|entry| entry.key == *key) {
                        Some(entry) => (entry.line, &entry.value),
                        None => break,
                    }
                }
                _ => break,
            };
            if found > 0 {
                line = found;
            }
            node = next;
        }
        line.max(1)
    }
}

#[cfg(test)]
mod tests;
