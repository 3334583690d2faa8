//! Parses one file, and keeps the previous version of documents that are invalid now.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde_json::Value;
use workload_health::Checked;

use discovery::objects::{Group, Key, ManualEntry, Service};
use injector::yaml_documents::{self, Document};

/// Maximum nesting depth of a document.
const DEPTH: usize = 64;

/// A file as it was last parsed.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) bytes: Option<Result<Vec<u8>, String>>,
    pub(super) objects: BTreeMap<ObjectId, (Object, Position)>,
    pub(super) errors: Vec<(Position, String)>,
    pub(super) warnings: Vec<(Position, String)>,
    /// True if the file contains a document that was never valid.
    pub(super) is_incomplete: bool,
}

/// Kind and key, which identify an object.
pub(super) type ObjectId = (&'static str, Key);
/// Line and number of a document; both are 0 for the file as a whole.
pub(super) type Position = (usize, usize);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Object {
    Group(Arc<Group>),
    Entry(Arc<ManualEntry>),
    Service(Arc<Service>),
}

/// Parses a file. Invalid documents keep the version that they have in `previous`.
pub(super) fn parse(bytes: Result<Vec<u8>, String>, previous: Parsed) -> Parsed {
    let mut parsed = Parsed::default();
    let mut text = None;
    match &bytes {
        Err(error) => parsed.errors.push(((0, 0), error.clone())),
        Ok(bytes) => match std::str::from_utf8(bytes) {
            Ok(utf8) => text = Some(utf8.to_owned()),
            Err(error) => parsed.errors.push(((0, 0), format!("not UTF-8: {error}"))),
        },
    }
    let mut is_readable = text.is_some();
    let had_previous = !previous.objects.is_empty();
    for document in yaml_documents::read(text.as_deref().unwrap_or_default()) {
        match document {
            Err(error) => {
                is_readable = false;
                let text = format!("column {}: {}", error.column, error.reason);
                parsed.errors.push(((error.line, error.number), text));
            }
            Ok(document) if document.number == 0 => {}
            Ok(document) => read_document(&document, &previous, &mut parsed),
        }
    }
    if !is_readable {
        // The content of the rest is unknown, so all previous objects of the file stay in effect.
        parsed.is_incomplete = !had_previous || previous.is_incomplete;
        for (name, object) in previous.objects {
            parsed.objects.insert(name, object);
        }
    }
    parsed.bytes = Some(bytes);
    parsed
}

fn read_document(document: &Document, previous: &Parsed, parsed: &mut Parsed) {
    let position = (first_line(document), document.number);
    let read = if depth(&document.value) > DEPTH {
        Err(vec![format!("nested more than {DEPTH} levels deep")])
    } else {
        object(&document.value)
    };
    match read {
        Ok((name, Checked { value, warnings })) => {
            parsed.warnings.extend(warnings.into_iter().map(|text| (position, text)));
            match parsed.objects.entry(name) {
                Entry::Vacant(vacant) => drop(vacant.insert((value, position))),
                Entry::Occupied(first) => {
                    let (kind, key) = first.key();
                    parsed.errors.push((position, format!("{kind} {key} is already defined in this file")));
                }
            }
        }
        Err(errors) => {
            parsed.errors.extend(errors.into_iter().map(|text| (position, text)));
            // The last valid version stays in effect: that of the same name, or that at the same
            // position if the document has no name.
            let by_name = name_of(&document.value).filter(|name| previous.objects.contains_key(name));
            let is_here =
                |(_, (_, (_, number))): &(&ObjectId, &(Object, Position))| *number == document.number;
            let by_position = || previous.objects.iter().find(is_here).map(|(name, _)| name.clone());
            match by_name.or_else(by_position) {
                Some(name) if !parsed.objects.contains_key(&name) => {
                    let object = previous.objects[&name].0.clone();
                    parsed.objects.insert(name, (object, position));
                }
                Some(_) => {}
                None => parsed.is_incomplete = true,
            }
        }
    }
}

fn object(value: &Value) -> Result<(ObjectId, Checked<Object>), Vec<String>> {
    let kind = value.get("kind").and_then(Value::as_str);
    Ok(match kind {
        Some("WorkloadGroup") => {
            let Checked { value, warnings } = Group::parse(value)?;
            let name = ("WorkloadGroup", value.key.clone());
            (name, Checked { value: Object::Group(Arc::new(value)), warnings })
        }
        Some("WorkloadEntry") => {
            let Checked { value: (key, entry), warnings } = ManualEntry::parse(value)?;
            (("WorkloadEntry", key), Checked { value: Object::Entry(Arc::new(entry)), warnings })
        }
        Some("ServiceEntry") => {
            let Checked { value, warnings } = Service::parse(value)?;
            let name = ("ServiceEntry", value.key.clone());
            (name, Checked { value: Object::Service(Arc::new(value)), warnings })
        }
        other => {
            let got = other.map_or_else(|| "none".to_owned(), workload_health::text::printable);
            return Err(vec![format!(
                "kind: expected WorkloadGroup, WorkloadEntry or ServiceEntry, got {got}"
            )]);
        }
    })
}

/// Returns kind and key of a document that may be invalid otherwise.
fn name_of(value: &Value) -> Option<ObjectId> {
    let kind = ["WorkloadGroup", "WorkloadEntry", "ServiceEntry"]
        .into_iter()
        .find(|kind| value.get("kind").and_then(Value::as_str) == Some(kind))?;
    let metadata = value.get("metadata")?;
    let name = metadata.get("name")?.as_str()?;
    let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or("default");
    Some((kind, Key::new(namespace, name)))
}

/// Returns the first line with content, after the document marker, blank lines and comments.
fn first_line(document: &Document) -> usize {
    let is_empty = |line: &&str| {
        let line = line.trim();
        line.is_empty()
            || line.starts_with('#')
            || line.starts_with('%')
            || line == "---"
            || line.starts_with("--- #")
    };
    document.line + document.text.lines().take_while(is_empty).count()
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
