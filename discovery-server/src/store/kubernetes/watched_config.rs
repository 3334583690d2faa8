//! The configuration that the watched objects define, and its errors. If an object becomes invalid,
//! its last valid state stays in effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use workload_health::Checked;
use workload_health::fields::Findings;

use super::object;
pub use super::watches::Kind;
use discovery::objects::{Config, Group, HostConflicts, Key, ManualEntry, Service};

/// Configuration from the watched objects.
#[derive(Debug, Default)]
pub struct WatchedConfig {
    config: Config,
    findings: BTreeMap<(Kind, Key), Findings>,
    /// ServiceEntries with a resolution other than STATIC. Istio users have many of them, and
    /// discovery does not serve them.
    non_static_services: BTreeSet<Key>,
}

/// Stores a parsed object, or removes it, and returns whether that changed anything.
fn store_parsed<T: PartialEq>(
    known: &mut BTreeMap<Key, Arc<T>>,
    findings: &mut BTreeMap<(Kind, Key), Findings>,
    at: (Kind, Key),
    read: Option<Result<Checked<T>, Vec<String>>>,
) -> bool {
    let before = findings.remove(&at).unwrap_or_default();
    let (object, now) = match read {
        None => return known.remove(&at.1).is_some() | (before != Findings::default()),
        Some(Ok(Checked { value, warnings })) => (Some(value), Findings { errors: Vec::new(), warnings }),
        Some(Err(errors)) => (None, Findings { errors, warnings: Vec::new() }),
    };
    let mut changed = before != now;
    if let Some(object) = object.filter(|object| known.get(&at.1).is_none_or(|known| **known != *object)) {
        known.insert(at.1.clone(), Arc::new(object));
        changed = true;
    }
    if now != Findings::default() {
        findings.insert(at, now);
    }
    changed
}

impl WatchedConfig {
    /// Updates an object, or removes it if it is `None`. Returns whether the configuration or its
    /// errors changed.
    pub fn update(&mut self, kind: Kind, key: &Key, object: Option<&Value>) -> bool {
        let (config, findings, at) = (&mut self.config, &mut self.findings, (kind, key.clone()));
        if object.is_none() && self.non_static_services.remove(key) && kind == Kind::Service {
            return true;
        }
        match kind {
            Kind::Group => store_parsed(&mut config.groups, findings, at, object.map(Group::parse)),
            Kind::Service => {
                let object = object.filter(|object| {
                    let is_static = object.pointer("/spec/resolution").is_some_and(|word| word == "STATIC");
                    if is_static {
                        self.non_static_services.remove(key)
                    } else {
                        self.non_static_services.insert(key.clone())
                    };
                    is_static
                });
                store_parsed(&mut config.services, findings, at, object.map(Service::parse))
            }
            Kind::Entry => {
                // Auto-registered entries are not configuration.
                let object = object.filter(|object| !object::is_auto(object));
                let read = object.map(|object| {
                    let Checked { value: (_, mut value), warnings } = ManualEntry::parse(object)?;
                    value.annotations = object::foreign_annotations(object);
                    Ok(Checked { value, warnings })
                });
                store_parsed(&mut config.entries, findings, at, read)
            }
        }
    }

    /// Returns the keys that are known in the namespace (`None`: in all) but were not listed.
    pub fn missing(&self, kind: Kind, namespace: Option<&str>, listed: &BTreeSet<Key>) -> Vec<Key> {
        let known: BTreeSet<&Key> = match kind {
            Kind::Group => self.config.groups.keys().collect(),
            Kind::Service => self.config.services.keys().chain(&self.non_static_services).collect(),
            Kind::Entry => self.config.entries.keys().collect(),
        };
        let invalid = self.findings.keys().filter(|(of, _)| *of == kind).map(|(_, key)| key);
        let all: BTreeSet<&Key> = known.into_iter().chain(invalid).collect();
        let in_scope = |key: &&&Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        all.iter().filter(in_scope).filter(|key| !listed.contains(**key)).map(|key| (*key).clone()).collect()
    }

    /// Returns the configuration that is in effect.
    pub fn config(&self) -> Arc<Config> {
        let Config { groups, entries, .. } = &self.config;
        let is_known = |(kind, key): &(Kind, Key)| match kind {
            Kind::Group => groups.contains_key(key),
            // No entry is ever deleted because a service is missing.
            Kind::Service => true,
            Kind::Entry => entries.contains_key(key),
        };
        let mut invalid = self.findings.iter().filter(|(_, findings)| !findings.errors.is_empty());
        let incomplete = !invalid.all(|(at, _)| is_known(at));
        Arc::new(Config { incomplete, ..self.config.clone() })
    }

    /// Returns all errors, such as `WorkloadGroup shop/payments: spec.probe.grpc.port: must be
    /// between 1 and 65535, got 0`.
    pub fn errors(&self) -> Vec<String> {
        self.lines(|findings| &findings.errors)
    }

    /// Returns all warnings: questionable settings that are accepted.
    pub fn warnings(&self) -> Vec<String> {
        let count = self.non_static_services.len();
        let ignored = format!("ServiceEntry: {count} ignored because their resolution is not STATIC");
        let mut lines = self.lines(|findings| &findings.warnings);
        lines.extend((count > 0).then_some(ignored));
        lines.extend(self.conflicts());
        lines
    }

    /// Returns one line for all services that share host and port with another service. They are
    /// served nevertheless; there may be many of them.
    fn conflicts(&self) -> Option<String> {
        let mut claims = HostConflicts::default();
        let mut conflicts = Vec::new();
        for service in self.config.services.values() {
            let found = claims.conflicts(service);
            conflicts.extend(found.into_iter().map(|text| format!("ServiceEntry {}: {text}", service.key)));
            claims.add(service);
        }
        let more = conflicts.len().saturating_sub(1);
        let first = conflicts.into_iter().next()?;
        Some(if more == 0 { first } else { format!("{first}; {more} more like this") })
    }

    fn lines(&self, of: impl Fn(&Findings) -> &Vec<String>) -> Vec<String> {
        let lines = self.findings.iter().flat_map(|((kind, key), findings)| {
            of(findings).iter().map(move |text| format!("{} {key}: {text}", kind.names().0))
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests;
