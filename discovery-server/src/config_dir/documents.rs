//! Decides which documents are in effect: the newest valid version of each.

mod parsed;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use super::{Configured, Files};
use discovery::objects::{Config, HostConflicts, Service};
use parsed::{Object, ObjectId, Parsed, Position, parse};

/// What an operator can do about a directory without files.
const FIX: &str = "nothing is deleted, because objects of it are in effect or in the store: check the \
    mount, or set --allow-empty-config if the directory is meant to be empty";

/// The files of the directory as they were last parsed.
#[derive(Debug)]
pub(super) struct LoadedFiles {
    /// If empty, all namespaces are read.
    namespaces: BTreeSet<String>,
    /// True if an empty directory means that there are no objects.
    allow_empty: bool,
    /// True if entries of earlier objects are in the store.
    has_stored: bool,
    files: BTreeMap<String, Parsed>,
    /// The error of reading the directory.
    error: Option<String>,
    was_read: bool,
    /// The last published configuration.
    in_effect: Arc<Config>,
}

impl LoadedFiles {
    pub(super) fn new(namespaces: BTreeSet<String>, allow_empty: bool, has_stored: bool) -> Self {
        Self {
            namespaces,
            allow_empty,
            has_stored,
            files: BTreeMap::new(),
            error: None,
            was_read: false,
            in_effect: Arc::default(),
        }
    }

    /// Turns an empty directory into an error if objects of it are known: its volume is probably
    /// not mounted. Every error of reading the directory says what to do then.
    pub(super) fn checked(&self, files: Files) -> Files {
        let is_known = self.has_stored || self.files.values().any(|file| !file.objects.is_empty());
        match files {
            _ if self.allow_empty || !is_known => files,
            Ok(files) if files.is_empty() => {
                Err(format!("--config-dir contains no .yaml or .yml file; {FIX}"))
            }
            Err(error) => Err(format!("{error}; {FIX}")),
            Ok(files) => Ok(files),
        }
    }

    /// Returns true if the content of the directory has changed.
    pub(super) fn differs(&self, files: &Files) -> bool {
        match files {
            Err(error) => self.error.as_ref() != Some(error),
            Ok(files) => {
                let known = self.files.iter().filter_map(|(name, known)| Some((name, known.bytes.as_ref()?)));
                self.error.is_some() || !files.iter().eq(known)
            }
        }
    }

    /// Merges two reads of the directory. A file that differs between them keeps its previous
    /// content.
    pub(super) fn merge_reads(&self, first: Files, second: Files) -> Files {
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

    /// Applies the new content of the directory. Returns `None` if nothing has changed.
    pub(super) fn update(&mut self, files: Files) -> Option<Configured> {
        let is_first = !mem::replace(&mut self.was_read, true);
        if !self.differs(&files) && !is_first {
            return None;
        }
        match files {
            // The objects read before stay in effect.
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
        self.in_effect = configured.config.clone();
        Some(configured)
    }

    /// Combines all files. Of objects with the same name, and of services with the same host and
    /// port, the first in the order of file names takes precedence.
    fn configured(&self) -> Configured {
        let mut config = Config::default();
        let mut errors: Vec<String> = self.error.iter().cloned().collect();
        let mut warnings = Vec::new();
        let mut owners: BTreeMap<&ObjectId, &String> = BTreeMap::new();
        let mut claims = HostConflicts::default();
        config.incomplete = self.files.is_empty() && self.error.is_some();
        for (file, parsed) in &self.files {
            config.incomplete |= parsed.is_incomplete;
            let mut of_file = parsed.errors.clone();
            let mut objects: Vec<_> = parsed.objects.iter().collect();
            objects.sort_by_key(|(_, (_, position))| *position);
            for (name, (object, position)) in objects {
                if !self.namespaces.is_empty() && !self.namespaces.contains(&name.1.namespace) {
                    continue;
                }
                if let Some(owner) = owners.get(name) {
                    of_file.push((*position, format!("{} {} is already defined in {owner}", name.0, name.1)));
                    continue;
                }
                owners.insert(name, file);
                let key = name.1.clone();
                match object {
                    Object::Group(group) => drop(config.groups.insert(key, group.clone())),
                    Object::Entry(entry) => drop(config.entries.insert(key, entry.clone())),
                    Object::Service(service) => {
                        let conflicts = claims.conflicts(service);
                        // The previous version of the service stays in effect, unless its hosts and
                        // ports are defined elsewhere now.
                        let is_free = |service: &&Arc<Service>| claims.conflicts(service).is_empty();
                        let before = self.in_effect.services.get(&key).filter(is_free);
                        let service = if conflicts.is_empty() { Some(service) } else { before };
                        of_file.extend(conflicts.into_iter().map(|text| (*position, text)));
                        if let Some(service) = service {
                            claims.add(service);
                            config.services.insert(key, service.clone());
                        }
                    }
                }
            }
            of_file.sort();
            errors.extend(of_file.iter().map(|(position, text)| line(file, *position, text)));
            warnings.extend(parsed.warnings.iter().map(|(position, text)| line(file, *position, text)));
        }
        Configured { config: Arc::new(config), errors, warnings }
    }
}

fn line(file: &str, (line, number): Position, text: &str) -> String {
    match (line, number) {
        (0, _) => format!("{file}: {text}"),
        (line, number) => format!("{file}:{line}: document {number}: {text}"),
    }
}
