//! Finds the lines of fields in the text of a document.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::path::{self, Step};
use injector::yaml::{DEPTH, NODES};

/// The lines of a document's fields.
pub(crate) struct Lines(Option<Node>);

/// A value with the line on which it begins, counted from 1; 0 if unknown.
struct Node {
    line: usize,
    content: Content,
}

enum Content {
    Scalar,
    List(Vec<Node>),
    /// The line of the key, the key and its value.
    Mapping(Vec<(usize, String, Node)>),
}

impl Lines {
    /// Reads a document of a stream, which the injector has parsed already.
    pub(crate) fn read(text: &str) -> Self {
        let budget = serde_saphyr::budget! {
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_nodes: NODES,
            max_events: 4 * NODES,
        };
        let options = serde_saphyr::options! {
            budget: budget,
            legacy_octal_numbers: true,
            emit_comments: false,
            with_snippet: false,
        };
        let text = text.trim_start_matches('\u{feff}');
        Self(serde_saphyr::from_str_with_options(text, options).ok())
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
                    match entries.iter().find(|(_, name, _)| name == key) {
                        Some((line, _, value)) => (*line, value),
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

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { line: line(&spanned), content: spanned.value })
    }
}

/// Returns the line on which a value is used; that of an alias is not the line of its anchor.
fn line<T>(spanned: &Spanned<T>) -> usize {
    usize::try_from(spanned.referenced.line()).unwrap_or(0)
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Content, E> {
        Ok(Content::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut mapping = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Node>()? {
            mapping.push((line(&key), key.value, value));
        }
        Ok(Content::Mapping(mapping))
    }
}

#[cfg(test)]
mod tests;
