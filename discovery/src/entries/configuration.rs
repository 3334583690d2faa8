//! Applies changes of the configuration while streams are open.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use super::streams::WaitingFor;
use super::{Code, DeletionReason, Entries, StreamId};
use crate::objects::{Config, Key, LastEndpoint};

impl Entries {
    pub(super) fn configure(&mut self, config: Arc<Config>) {
        let old = mem::replace(&mut self.config, config.clone());
        let is_first = !mem::replace(&mut self.is_configured, true);
        self.may_keep = self.settings.keep_last_endpoint
            || config.services.values().any(|service| service.last_endpoint == Some(LastEndpoint::Keep));
        for key in differences(&old.entries, &config.entries) {
            self.configure_entry(&key);
        }
        let groups = differences(&old.groups, &config.groups);
        if is_first || old.incomplete {
            self.delete_unconfigured();
        } else if !groups.is_empty() {
            self.delete_without_group(|group| groups.contains(group));
        }
        let members = self.members(&groups);
        for key in &groups {
            self.bind_streams_waiting_for(&WaitingFor::Group(key.clone()));
        }
        for id in members {
            self.bind(id);
        }
    }

    /// Deletes stored entries that have no group or manual entry any more.
    fn delete_unconfigured(&mut self) {
        if self.config.incomplete {
            return;
        }
        let config = self.config.clone();
        let is_bare = |key: &Key| !config.entries.contains_key(key);
        let bare = self.entries.iter().filter(|(key, entry)| entry.record.auto.is_none() && is_bare(key));
        let bare: Vec<Key> = bare.map(|(key, _)| key.clone()).collect();
        // In a shared store the operator's entries are objects themselves, so their deletion is
        // observed there.
        if !self.settings.shared {
            bare.iter().for_each(|key| self.delete(key, DeletionReason::Removed));
        }
        self.delete_without_group(|_| true);
    }

    fn delete_without_group(&mut self, concerns: impl Fn(&Key) -> bool) {
        let config = self.config.clone();
        let gone = self.entries.iter().filter(|(key, entry)| {
            let Some(auto) = &entry.record.auto else { return false };
            let group = Key::new(key.namespace.clone(), auto.group.clone());
            concerns(&group) && !config.groups.contains_key(&group) && self.ownership.owns(&entry.record)
        });
        let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| self.delete(key, DeletionReason::GroupDeleted));
    }

    /// Returns the streams bound to entries of these groups, the reporting stream of an entry last.
    fn members(&self, groups: &BTreeSet<Key>) -> Vec<StreamId> {
        if groups.is_empty() {
            return Vec::new();
        }
        let of_group = self.entries.iter().filter(|(key, entry)| {
            let auto = entry.record.auto.as_ref();
            auto.is_some_and(|auto| groups.contains(&Key::new(key.namespace.clone(), auto.group.clone())))
        });
        // The last stream to be bound again determines the entry, which must be the reporting one.
        of_group
            .flat_map(|(_, entry)| {
                let reporter = entry.session.reporter();
                let others = entry.session.streams().iter().copied().filter(move |id| Some(*id) != reporter);
                others.chain(reporter)
            })
            .collect()
    }

    fn bind_streams_waiting_for(&mut self, wait: &WaitingFor) {
        self.streams.waiting_for(wait).into_iter().for_each(|id| self.bind(id));
    }

    /// Tries again to bind the streams that wait for this entry.
    pub(super) fn bind_waiting(&mut self, key: &Key) {
        self.bind_streams_waiting_for(&WaitingFor::Entry(key.clone()));
    }

    /// Applies that a manual entry was added, changed or removed.
    fn configure_entry(&mut self, key: &Key) {
        let Some(manual) = self.config.entries.get(key).cloned() else {
            self.delete(key, DeletionReason::Removed);
            return self.bind_waiting(key);
        };
        if self.entries.get(key).is_some_and(|entry| entry.record.auto.is_some()) {
            // The operator's entry replaces an auto-registered one of the same name.
            self.end_streams(key, "an entry of this name was configured");
            self.delete(key, DeletionReason::Removed);
        }
        let entry = self.entries.entry(key.clone()).or_default();
        let old = entry.manual.replace(manual.clone());
        let is_moved = old.as_ref().is_some_and(|old| old.spec.address != manual.spec.address);
        let is_another = old.is_some_and(|old| old.spec.service_account != manual.spec.service_account);
        if is_moved {
            // The condition was that of another machine.
            entry.record.condition = None;
            entry.record.before = None;
        }
        if is_moved || is_another {
            self.end_streams(key, "the entry was edited");
        }
        self.reconcile(key);
        self.bind_waiting(key);
    }

    /// Closes all streams of an entry, so that they register again.
    pub(super) fn end_streams(&mut self, key: &Key, why: &str) {
        let streams = self.entries.get(key).map(|entry| entry.session.streams().clone()).unwrap_or_default();
        for id in streams {
            self.end(id, Code::Aborted, why.to_owned());
        }
    }
}

/// Returns the keys that were added, removed or changed.
fn differences<T: PartialEq>(old: &BTreeMap<Key, Arc<T>>, new: &BTreeMap<Key, Arc<T>>) -> BTreeSet<Key> {
    let is_other = |key: &Key, value: &Arc<T>, others: &BTreeMap<Key, Arc<T>>| {
        others.get(key).is_none_or(|other| !Arc::ptr_eq(other, value) && other != value)
    };
    let gone_or_other = old.iter().filter(|(key, value)| is_other(key, value, new));
    let new_ones = new.iter().filter(|(key, _)| !old.contains_key(key));
    gone_or_other.chain(new_ones).map(|(key, _)| key.clone()).collect()
}
