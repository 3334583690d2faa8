//! Builds a tree from the events of the parser: resolves aliases, merges `<<`, and limits the size.

mod entries;
mod size;

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, StructureStyle};
use serde_json::{Map, Value};

use super::scalar::{KeyType, Scalar};
use super::{DEPTH, YamlError};
use entries::Entries;
use size::Size;

/// The prefix of YAML's own tags.
const TAGS: &str = "tag:yaml.org,2002:";
/// The number of a node's anchor if it has none.
const NO_ANCHOR: usize = 0;
/// The key whose value is merged into the mapping.
const MERGE: &str = "<<";
/// Maximum bytes of text in all copies that anchors and aliases make, besides twice the document.
const COPIES: usize = 1 << 20;

/// A value with its position.
#[derive(Clone, Debug)]
pub struct Node {
    /// The line on which it begins, counted from 1; of an alias, that of the alias.
    pub line: usize,
    column: usize,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A key of a mapping with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The line of the key, counted from 1.
    pub line: usize,
    pub key: String,
    pub value: Node,
    key_type: KeyType,
    /// True if the entry comes from `<<`.
    is_merged: bool,
}

impl Node {
    /// Returns the value in JSON.
    ///
    /// # Errors
    /// Fails for values that JSON does not have.
    pub fn into_value(self) -> Result<Value, YamlError> {
        Ok(match self.content {
            Content::Scalar(scalar) => {
                scalar.into_value().map_err(|reason| error(self.line, self.column, reason))?
            }
            Content::List(nodes) => {
                Value::Array(nodes.into_iter().map(Self::into_value).collect::<Result<_, _>>()?)
            }
            Content::Mapping(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for entry in entries {
                    map.insert(entry.key, entry.value.into_value()?);
                }
                Value::Object(map)
            }
        })
    }
}

/// A position and a reason.
fn error(line: usize, column: usize, reason: impl Into<String>) -> YamlError {
    YamlError { line: line as u64, column: column as u64, reason: reason.into() }
}

fn error_at(span: &Span, reason: impl Into<String>) -> YamlError {
    error(span.start.line(), span.start.col() + 1, reason)
}

/// An anchored value with its size; `None` while it is being read.
type Anchor = Option<(Rc<Node>, Size)>;

/// Reads the events of one document.
pub(super) struct Composer<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Anchor>,
    /// Nodes with all aliases expanded, and copies for anchors.
    nodes: usize,
    limit: usize,
    /// Bytes of text in copies for anchors and aliases.
    copied: usize,
    copy_limit: usize,
    /// The number of flow collections, such as `[a, b]`, around the next node.
    flow: usize,
}

impl<'a> Composer<'a> {
    pub(super) fn new(text: &'a str, limit: usize) -> Self {
        let options = granit_parser::options! {
            disallow_directives: true,
            emit_comments: false,
            flow_nesting_limit: DEPTH,
            block_nesting_limit: DEPTH,
        };
        let parser = Parser::new_from_str_with_options(text, options);
        let copy_limit = text.len().saturating_mul(2).saturating_add(COPIES);
        Self { text, parser, anchors: HashMap::new(), nodes: 0, limit, copied: 0, copy_limit, flow: 0 }
    }

    /// Returns the document; `None` if there is none.
    pub(super) fn document(mut self) -> Result<Option<Node>, YamlError> {
        let mut document = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(document),
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if document.is_some() => {
                    return Err(error_at(&span, "more than one document"));
                }
                Event::DocumentStart(..) => {
                    let (event, span) = self.next()?;
                    document = Some(self.node(event, &span, 1)?);
                }
                _ => return Err(error_at(&span, "unexpected content")),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(scan_error(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, YamlError> {
        if depth > DEPTH {
            return Err(too_deep(span));
        }
        self.count(1, span)?;
        let (content, anchor) = match event {
            Event::Alias(id) => return self.alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => {
                if self.flow > 0 && style == ScalarStyle::Plain && text.starts_with(':') {
                    return Err(error_at(
                        span,
                        "a plain scalar cannot start with ':' here; write it in quotes",
                    ));
                }
                let scalar = match tag {
                    None if style == ScalarStyle::Plain => Scalar::of_plain(&text),
                    None => Scalar::Text(text.into_owned()),
                    Some(tag) => match tag.suffix_in_namespace(TAGS) {
                        Some(tag) => Scalar::of_tag(&tag, &text)
                            .map_err(|reason| error_at(span, format!("{text:?} {reason}")))?,
                        None => Scalar::Text(text.into_owned()),
                    },
                };
                (Content::Scalar(scalar), anchor)
            }
            Event::SequenceStart(style, anchor, _) => {
                self.open(anchor, style);
                let list = self.list(depth)?;
                self.close(style);
                (Content::List(list), anchor)
            }
            Event::MappingStart(style, anchor, _) => {
                self.open(anchor, style);
                let mapping = self.mapping(depth)?;
                self.close(style);
                (Content::Mapping(mapping), anchor)
            }
            _ => return Err(error_at(span, "unexpected content")),
        };
        let node = Node { line: span.start.line(), column: span.start.col() + 1, content };
        if anchor != NO_ANCHOR {
            // The copy counts, too: anchors in anchors would multiply the memory by their depth.
            let size = Size::of(&node);
            self.count_copy(size, span)?;
            self.anchors.insert(anchor, Some((Rc::new(node.clone()), size)));
        }
        Ok(node)
    }

    /// Notes that a collection begins, which cannot contain its own alias.
    fn open(&mut self, anchor: usize, style: StructureStyle) {
        self.flow += usize::from(style == StructureStyle::Flow);
        if anchor != NO_ANCHOR {
            self.anchors.insert(anchor, None);
        }
    }

    fn close(&mut self, style: StructureStyle) {
        self.flow -= usize::from(style == StructureStyle::Flow);
    }

    /// Rejects `{a:}` and `[a:]`, in which the colon belongs to the scalar for kubectl, and ends a
    /// key for the parser.
    fn check_colon(&self, key: &Span) -> Result<(), YamlError> {
        let rest = key.end.byte_offset().and_then(|end| self.text.get(end..)).unwrap_or_default();
        if rest.strip_prefix(':').is_some_and(|rest| rest.starts_with([',', '[', ']', '{', '}'])) {
            return Err(error_at(key, "a space must follow the colon after a key"));
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, span: &Span, depth: usize) -> Result<Node, YamlError> {
        let Some(Some((node, size))) = self.anchors.get(&id) else {
            return Err(error_at(span, "an alias of a value that contains it"));
        };
        let (node, size) = (Rc::clone(node), *size);
        if depth + size.levels_below > DEPTH {
            return Err(too_deep(span));
        }
        self.count_copy(size, span)?;
        Ok(Node { line: span.start.line(), ..(*node).clone() })
    }

    /// Counts a copy before it is made.
    fn count_copy(&mut self, size: Size, span: &Span) -> Result<(), YamlError> {
        self.count(size.nodes, span)?;
        self.copied += size.bytes;
        if self.copied > self.copy_limit {
            return Err(error_at(span, "anchors and aliases repeat too much text"));
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, span: &Span) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > self.limit { Err(error_at(span, "too many values")) } else { Ok(()) }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, YamlError> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(nodes),
                (event, span) => nodes.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Vec<Entry>, YamlError> {
        let mut entries = Entries::default();
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(entries.list),
                next => next,
            };
            if matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..)) {
                self.check_colon(&span)?;
            }
            if matches!(&event, Event::Scalar(text, _, _, Some(_)) if text == MERGE) {
                return Err(error_at(&span, "<< has a tag that is not supported"));
            }
            let is_merge =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == MERGE);
            let key = self.node(event, &span, depth + 1)?;
            let (event, value_span) = self.next()?;
            let value = self.node(event, &value_span, depth + 1)?;
            if is_merge {
                entries.merge(value.content, &value_span)?;
                continue;
            }
            let Content::Scalar(scalar) = key.content else {
                return Err(error_at(&span, "a key must be a scalar"));
            };
            let (key, key_type) = scalar.into_key().map_err(|reason| error_at(&span, reason))?;
            let entry = Entry { line: span.start.line(), key, value, key_type, is_merged: false };
            entries.insert(entry, &span)?;
        }
    }
}

fn too_deep(span: &Span) -> YamlError {
    error_at(span, format!("more than {DEPTH} levels"))
}

fn scan_error(found: &ScanError) -> YamlError {
    let marker = found.marker();
    error(marker.line(), marker.col() + 1, found.info().lines().next().unwrap_or_default())
}
