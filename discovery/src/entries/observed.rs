//! Applies changes that operators and other instances make in a shared store, and changes of the
//! set of live instances.

use std::collections::BTreeSet;

use super::entry::Entry;
use super::{Code, DeletionReason, Entries, Ownership, Record, StreamId};
use crate::objects::Key;

impl Entries {
    /// Applies a change of an entry by another writer.
    pub(super) fn observe(&mut self, key: Key, record: Option<Record>) {
        match record {
            Some(record) => self.observe_record(&key, record),
            None => self.observe_deleted(&key),
        }
        self.reconcile(&key);
    }

    fn observe_deleted(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.storage.observed(None);
        if entry.record.auto.is_none() {
            // The deleted object was also part of the configuration.
            entry.record = Record::default();
            return;
        }
        if !entry.session.is_connected() || entry.record.is_foreign() {
            self.delete(key, DeletionReason::Removed);
            return self.bind_waiting(key);
        }
        // Its streams are open, so the entry is written again.
        entry.record.resource_version = None;
        entry.record.connected_at = Some(self.at.wall);
    }

    fn observe_record(&mut self, key: &Key, record: Record) {
        let entry = self.entries.entry(key.clone()).or_insert_with(|| {
            let entry = Entry::stored(record.clone());
            self.registrations.replace(&key.namespace, None, entry.registrant.as_ref());
            entry
        });
        let was_foreign = entry.record.is_foreign();
        let session = entry.record.session;
        let is_taken = entry.storage.is_session_stored();
        if entry.session.reporter().is_none() || record.is_foreign() {
            return self.adopt_record(key, record, was_foreign);
        }
        if record.session < session || (record.session == session && is_taken) {
            return self.rewrite_record(key, record);
        }
        if !is_taken {
            return self.take_next_session(key, record);
        }
        // A newer stream is connected to another instance.
        if let Some(reporter) = entry.session.detach_reporter() {
            entry.liveness.expect_no_report();
            self.supersede(reporter);
        }
        self.adopt_record(key, record, was_foreign);
    }

    /// Adopts the stored record, because no stream reports on the entry at this instance.
    fn adopt_record(&mut self, key: &Key, record: Record, was_foreign: bool) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_edited = entry.record.is_moved(&record);
        entry.record = record.clone();
        entry.storage.observed(Some(record));
        let is_foreign = entry.record.is_foreign();
        if is_foreign && entry.session.is_connected() {
            // The streams wait until the other controller releases the entry.
            let streams = entry.session.detach_all();
            self.rebind(streams);
        } else if is_edited {
            self.end_streams(key, "the entry was edited");
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_owned = self.ownership.owns(&entry.record);
        if !is_owned {
            // The instance that owns the entry handles its timeouts.
            entry.liveness.stop();
        } else if entry.session.is_connected() {
            entry.liveness.expect_no_stream();
        } else {
            entry.liveness.expect_stream(&self.settings, self.at.now);
        }
        if was_foreign && !is_foreign {
            self.bind_waiting(key);
        }
    }

    /// Keeps the status of this instance, which is newer than the stored one, and adopts edits of
    /// the spec by other writers. The entry is written again.
    fn rewrite_record(&mut self, key: &Key, record: Record) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_edited = entry.record.is_moved(&record);
        if let (Some(own), Some(other)) = (&mut entry.record.auto, &record.auto) {
            let health_checks = own.health_checks;
            *own = other.clone();
            own.health_checks = health_checks;
        }
        entry.record.resource_version.clone_from(&record.resource_version);
        entry.storage.observed(Some(record));
        if is_edited {
            self.end_streams(key, "the entry was edited");
        }
    }

    /// Two instances began the same session. The write of this one was not stored, so it takes the
    /// next session number.
    fn take_next_session(&mut self, key: &Key, record: Record) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.record.session = record.session + 1;
        entry.record.resource_version.clone_from(&record.resource_version);
        entry.storage.session_began();
        if entry.session.renumber(entry.record.session) {
            entry.record.condition.clone_from(&record.condition);
            entry.record.before = record.before;
        }
        entry.storage.observed(Some(record));
        if let Some(reporter) = entry.session.reporter() {
            self.hello(reporter);
        }
    }

    /// Ends the streams of all agents that report here, so that they connect to other instances.
    pub(super) fn end_reporters(&mut self) {
        let reporters = self.entries.values().filter_map(|entry| entry.session.reporter());
        let reporters: Vec<StreamId> = reporters.collect();
        for reporter in reporters {
            let text = "this replica of discovery has lost its API server";
            self.end(reporter, Code::Aborted, text.to_owned());
        }
    }

    /// Updates the set of live instances.
    pub(super) fn set_live_instances(&mut self, alive: BTreeSet<String>, released: &BTreeSet<String>) {
        self.ownership.live_instances = Some(alive);
        let now = self.at.now;
        let mut keys = Vec::new();
        for (key, entry) in &mut self.entries {
            if entry.session.reporter().is_some()
                || entry.record.controller.as_ref() == Some(&self.ownership.controller)
            {
                continue;
            }
            if !self.ownership.owns(&entry.record) {
                entry.liveness.expect_no_stream();
                continue;
            }
            // An instance that is lost may still have the streams of its agents, which detect that
            // at their next heartbeat.
            let is_released =
                Ownership::instance(&entry.record).is_some_and(|instance| released.contains(instance));
            let from = if is_released { now } else { now.saturating_add(self.settings.heartbeat_at_most()) };
            if !entry.session.is_connected() {
                entry.liveness.expect_stream(&self.settings, from);
            } else {
                // The stream of the workload's Envoy is open here; that of its agent was open at
                // the instance that is not alive.
                entry.record.controller = Some(self.ownership.controller.clone());
                if entry.record.session > 0 {
                    entry.liveness.expect_report(&self.settings, from);
                }
            }
            keys.push(key.clone());
        }
        for key in &keys {
            self.reconcile(key);
        }
    }
}
