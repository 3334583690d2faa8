//! PURE. The configuration that the watched objects make, and what is wrong with them. Of an object that becomes bad the last good state
//! stays in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::object;
pub use super::watch::Kind;
use crate::discovery::objects::{Config, Group, Key, ManualEntry, Service};

/// What is configured now.
#[derive(Debug, Default)]
pub struct Configuration {
    config: Config,
    errors: BTreeMap<(Kind, Key), Vec<String>>,
    /// ServiceEntries of another resolution than STATIC: Istio's users have many, and they are not ours to serve.
    others: BTreeSet<Key>,
}

/// Puts what was read in its place; whether that made a difference.
fn place<T: PartialEq>(
    there: &mut BTreeMap<Key, Arc<T>>,
    errors: &mut BTreeMap<(Kind, Key), Vec<String>>,
    at: (Kind, Key),
    read: Option<Result<T, Vec<String>>>,
) -> bool {
    let had_errors = errors.remove(&at);
    match read {
        None => there.remove(&at.1).is_some() | had_errors.is_some(),
        Some(Ok(object)) if there.get(&at.1).is_some_and(|there| **there == object) => had_errors.is_some(),
        Some(Ok(object)) => {
            there.insert(at.1, Arc::new(object));
            true
        }
        Some(Err(texts)) => {
            let is_news = had_errors.as_ref() != Some(&texts);
            errors.insert(at, texts);
            is_news
        }
    }
}

impl Configuration {
    /// An object as it is now, or none; whether the configuration or its errors differ.
    pub fn put(&mut self, kind: Kind, key: &Key, object: Option<&Value>) -> bool {
        let (config, errors, at) = (&mut self.config, &mut self.errors, (kind, key.clone()));
        if object.is_none() && self.others.remove(key) && kind == Kind::Service {
            return true;
        }
        match kind {
            Kind::Group => {
                let read = object.map(|object| Group::parse(object).map(|checked| checked.value));
                place(&mut config.groups, errors, at, read)
            }
            Kind::Service => {
                let object = object.filter(|object| {
                    let is_static = object.pointer("/spec/resolution").is_some_and(|word| word == "STATIC");
                    if is_static {
                        self.others.remove(key)
                    } else {
                        self.others.insert(key.clone())
                    };
                    is_static
                });
                let read = object.map(|object| Service::parse(object).map(|checked| checked.value));
                place(&mut config.services, errors, at, read)
            }
            Kind::Entry => {
                // What we made ourselves is no configuration.
                let object = object.filter(|object| !object::is_auto(object));
                let read = object.map(|object| {
                    let (_, mut entry) = ManualEntry::parse(object)?.value;
                    entry.annotations = object::others(object);
                    Ok(entry)
                });
                place(&mut config.entries, errors, at, read)
            }
        }
    }

    /// What is known in the scope, a namespace or all, and was not listed.
    pub fn missing(&self, kind: Kind, namespace: Option<&str>, listed: &BTreeSet<Key>) -> Vec<Key> {
        let known: BTreeSet<&Key> = match kind {
            Kind::Group => self.config.groups.keys().collect(),
            Kind::Service => self.config.services.keys().chain(&self.others).collect(),
            Kind::Entry => self.config.entries.keys().collect(),
        };
        let bad = self.errors.keys().filter(|(of, _)| *of == kind).map(|(_, key)| key);
        let all: BTreeSet<&Key> = known.into_iter().chain(bad).collect();
        let in_scope = |key: &&&Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        all.iter().filter(in_scope).filter(|key| !listed.contains(**key)).map(|key| (*key).clone()).collect()
    }

    /// All that is in force.
    pub fn config(&self) -> Arc<Config> {
        let Config { groups, entries, .. } = &self.config;
        let is_known = |(kind, key): &(Kind, Key)| match kind {
            Kind::Group => groups.contains_key(key),
            // Nothing is deleted for a service.
            Kind::Service => true,
            Kind::Entry => entries.contains_key(key),
        };
        let incomplete = !self.errors.keys().all(is_known);
        Arc::new(Config { incomplete, ..self.config.clone() })
    }

    /// All errors, as `WorkloadGroup shop/payments: spec.probe.grpc.port: must be between 1 and 65535, got 0`.
    pub fn errors(&self) -> Vec<String> {
        let lines = self.errors.iter().flat_map(|((kind, key), texts)| {
            texts.iter().map(move |text| format!("{} {key}: {text}", kind.words().0))
        });
        let others = self.others.len();
        let ignored = format!("ServiceEntry: {others} ignored, of another resolution than STATIC");
        lines.chain((others > 0).then_some(ignored)).collect()
    }
}

#[cfg(test)]
mod tests;
