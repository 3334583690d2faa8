//! What of the documents is in force: the newest version of each that is right.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use probe::Checked;
use serde_json::Value;

use super::{Configured, Files};
use crate::discovery::objects::{Claims, Config, Group, Key, ManualEntry, Service};
use crate::inject::stream::{self, Document};

/// Levels of nesting; more is refused.
const DEPTH: usize = 64;

/// All files, each with what is in force of it.
#[derive(Debug)]
pub(super) struct Documents {
    /// Empty: all.
    namespaces: BTreeSet<String>,
    files: BTreeMap<String, Parsed>,
    /// What the directory itself says.
    error: Option<String>,
    was_read: bool,
    in_force: Arc<Config>,
}

/// A file as it was last read.
#[derive(Debug, Default)]
struct Parsed {
    bytes: Option<Result<Vec<u8>, String>>,
    objects: BTreeMap<Name, (Object, Place)>,
    errors: Vec<(Place, String)>,
    warnings: Vec<(Place, String)>,
    /// Something in it was never right.
    is_incomplete: bool,
}

/// Kind and key: what makes two documents the same object.
type Name = (&'static str, Key);
/// Line and number of a document; both 0 for the file as a whole.
type Place = (usize, usize);

#[derive(Clone, Debug, PartialEq)]
enum Object {
    Group(Arc<Group>),
    Entry(Arc<ManualEntry>),
    Service(Arc<Service>),
}

impl Documents {
    pub(super) fn new(namespaces: BTreeSet<String>) -> Self {
        Self { namespaces, files: BTreeMap::new(), error: None, was_read: false, in_force: Arc::default() }
    }

    /// Whether the directory holds something else than is known.
    pub(super) fn is_news(&self, files: &Files) -> bool {
        match files {
            Err(error) => self.error.as_ref() != Some(error),
            Ok(files) => {
                let known = self.files.iter().filter_map(|(name, known)| Some((name, known.bytes.as_ref()?)));
                self.error.is_some() || !files.iter().eq(known)
            }
        }
    }

    /// What two looks saw, one soon after the other: a file that they saw differently is as it was before.
    pub(super) fn settled(&self, first: Files, second: Files) -> Files {
        let (mut first, mut settled) = (first?, second?);
        let names: BTreeSet<String> = first.keys().chain(settled.keys()).cloned().collect();
        for name in names {
            if first.remove(&name).as_ref() != settled.get(&name) {
                match self.files.get(&name).and_then(|known| known.bytes.clone()) {
                    Some(known) => drop(settled.insert(name, known)),
                    None => drop(settled.remove(&name)),
                }
            }
        }
        Ok(settled)
    }

    /// Takes in what the directory holds now. `None`: nothing is different.
    pub(super) fn update(&mut self, files: Files) -> Option<Configured> {
        let is_first = !mem::replace(&mut self.was_read, true);
        if !self.is_news(&files) && !is_first {
            return None;
        }
        match files {
            // What was read stays in force.
            Err(error) => self.error = Some(error),
            Ok(files) => {
                self.error = None;
                self.files.retain(|name, _| files.contains_key(name));
                for (name, bytes) in files {
                    let known = self.files.get(&name);
                    if known.is_none_or(|known| known.bytes.as_ref() != Some(&bytes)) {
                        let known = self.files.remove(&name).unwrap_or_default();
                        self.files.insert(name, parse(bytes, known));
                    }
                }
            }
        }
        let configured = self.configured();
        self.in_force = configured.config.clone();
        Some(configured)
    }

    /// All files together: of equal names, and of services with the same host and port, the first by file name.
    fn configured(&self) -> Configured {
        let mut config = Config::default();
        let mut errors: Vec<String> = self.error.iter().cloned().collect();
        let mut warnings = Vec::new();
        let mut owners: BTreeMap<&Name, &String> = BTreeMap::new();
        let mut claims = Claims::default();
        config.incomplete = self.files.is_empty() && self.error.is_some();
        for (file, parsed) in &self.files {
            config.incomplete |= parsed.is_incomplete;
            let mut of_file = parsed.errors.clone();
            let mut objects: Vec<_> = parsed.objects.iter().collect();
            objects.sort_by_key(|(_, (_, place))| *place);
            for (name, (object, place)) in objects {
                if !self.namespaces.is_empty() && !self.namespaces.contains(&name.1.namespace) {
                    continue;
                }
                if let Some(owner) = owners.get(name) {
                    of_file.push((*place, format!("{} {} stands in {owner} already", name.0, name.1)));
                    continue;
                }
                owners.insert(name, file);
                let key = name.1.clone();
                match object {
                    Object::Group(group) => drop(config.groups.insert(key, group.clone())),
                    Object::Entry(entry) => drop(config.entries.insert(key, entry.clone())),
                    Object::Service(service) => {
                        let conflicts = claims.conflicts(service);
                        // What it was before stays, unless that is taken too.
                        let is_free = |service: &&Arc<Service>| claims.conflicts(service).is_empty();
                        let before = self.in_force.services.get(&key).filter(is_free);
                        let service = if conflicts.is_empty() { Some(service) } else { before };
                        of_file.extend(conflicts.into_iter().map(|text| (*place, text)));
                        if let Some(service) = service {
                            claims.add(service);
                            config.services.insert(key, service.clone());
                        }
                    }
                }
            }
            of_file.sort();
            errors.extend(of_file.iter().map(|(place, text)| line(file, *place, text)));
            warnings.extend(parsed.warnings.iter().map(|(place, text)| line(file, *place, text)));
        }
        Configured { config: Arc::new(config), errors, warnings }
    }
}

fn line(file: &str, (line, number): Place, text: &str) -> String {
    match (line, number) {
        (0, _) => format!("{file}: {text}"),
        (line, number) => format!("{file}:{line}: document {number}: {text}"),
    }
}

/// Reads a file; what is wrong in it stays as it was in `known`.
fn parse(bytes: Result<Vec<u8>, String>, known: Parsed) -> Parsed {
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
    let was_known = !known.objects.is_empty();
    for document in stream::read(text.as_deref().unwrap_or_default()) {
        match document {
            Err(error) => {
                is_readable = false;
                let text = format!("column {}: {}", error.column, error.reason);
                parsed.errors.push(((error.line, error.number), text));
            }
            Ok(document) if document.number == 0 => {}
            Ok(document) => read_document(&document, &known, &mut parsed),
        }
    }
    if !is_readable {
        // Nobody knows what stands in the rest of it: all that was there stays.
        parsed.is_incomplete = !was_known || known.is_incomplete;
        for (name, object) in known.objects {
            parsed.objects.insert(name, object);
        }
    }
    parsed.bytes = Some(bytes);
    parsed
}

fn read_document(document: &Document, known: &Parsed, parsed: &mut Parsed) {
    let place = (first_line(document), document.number);
    let read = if depth(&document.value) > DEPTH {
        Err(vec![format!("more than {DEPTH} levels deep")])
    } else {
        object(&document.value)
    };
    match read {
        Ok((name, Checked { value, warnings })) => {
            parsed.warnings.extend(warnings.into_iter().map(|text| (place, text)));
            match parsed.objects.entry(name) {
                Entry::Vacant(vacant) => drop(vacant.insert((value, place))),
                Entry::Occupied(first) => {
                    let (kind, key) = first.key();
                    parsed.errors.push((place, format!("{kind} {key} stands twice in this file")));
                }
            }
        }
        Err(errors) => {
            parsed.errors.extend(errors.into_iter().map(|text| (place, text)));
            // Its last version that was right stays: the one of its name, or of its place where it has none.
            let by_name = name_of(&document.value).filter(|name| known.objects.contains_key(name));
            let is_here = |(_, (_, (_, number))): &(&Name, &(Object, Place))| *number == document.number;
            let by_place = || known.objects.iter().find(is_here).map(|(name, _)| name.clone());
            match by_name.or_else(by_place) {
                Some(name) if !parsed.objects.contains_key(&name) => {
                    let object = known.objects[&name].0.clone();
                    parsed.objects.insert(name, (object, place));
                }
                Some(_) => {}
                None => parsed.is_incomplete = true,
            }
        }
    }
}

fn object(value: &Value) -> Result<(Name, Checked<Object>), Vec<String>> {
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
            let got = other.map_or_else(|| "none".to_owned(), probe::health_report::printable);
            return Err(vec![format!(
                "kind: expected WorkloadGroup, WorkloadEntry or ServiceEntry, got {got}"
            )]);
        }
    })
}

/// Kind and key of a document that may be wrong elsewhere.
fn name_of(value: &Value) -> Option<Name> {
    let kind = ["WorkloadGroup", "WorkloadEntry", "ServiceEntry"]
        .into_iter()
        .find(|kind| value.get("kind").and_then(Value::as_str) == Some(kind))?;
    let metadata = value.get("metadata")?;
    let name = metadata.get("name")?.as_str()?;
    let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or("default");
    Some((kind, Key::new(namespace, name)))
}

/// The line on which its content begins, behind marker, blanks and comments.
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
