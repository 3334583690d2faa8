//! Applies changes that operators and other instances make in a shared store, and changes of the
//! set of live instances.

use std::collections::BTreeSet;

use super::entry::Entry;
use super::{Code, Entries, Ownership, Record, StreamId};
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
        if entry.record.auto.is_none() {
            // The deleted object was also part of the configuration.
            entry.record = Record::default();
            entry.saved = None;
            return;
        }
        if entry.streams.is_empty() || entry.record.is_foreign() {
            self.remove_deleted(key);
            return self.bind_waiting(key);
        }
        // Its streams are open, so the entry is written again.
        entry.saved = None;
        entry.record.resource_version = None;
        entry.record.connected_at = Some(self.at.wall);
    }

    fn observe_record(&mut self, key: &Key, record: Record) {
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry::stored(record.clone()));
        let was_foreign = entry.record.is_foreign();
        let session = entry.record.session;
        let is_taken = entry.stored >= entry.session_write;
        if entry.reporter.is_none() || record.is_foreign() {
            return self.adopt_record(key, record, was_foreign);
        }
        if record.session < session || (record.session == session && is_taken) {
            return self.rewrite_record(key, record);
        }
        if !is_taken {
            return self.take_next_session(key, record);
        }
        // A newer stream is connected to another instance.
        if let Some(reporter) = entry.reporter.take() {
            entry.streams.remove(&reporter);
            entry.silence_deadline = None;
            self.supersede(reporter);
        }
        self.adopt_record(key, record, was_foreign);
    }

    /// Adopts the stored record, because no stream reports on the entry at this instance.
    fn adopt_record(&mut self, key: &Key, record: Record, was_foreign: bool) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_edited = entry.record.is_moved(&record);
        entry.record = record.clone();
        entry.saved = Some(record);
        let is_foreign = entry.record.is_foreign();
        if is_foreign && !entry.streams.is_empty() {
            // The streams wait until the other controller releases the entry.
            let streams = std::mem::take(&mut entry.streams);
            entry.reporter = None;
            self.rebind(streams);
        } else if is_edited {
            self.end_streams(key, "the entry was edited");
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_owned = self.ownership.owns(&entry.record);
        if !is_owned {
            // The instance that owns the entry handles its timeouts.
            (entry.disconnect_deadline, entry.silence_deadline, entry.first_result_deadline) =
                (None, None, None);
        } else if !entry.streams.is_empty() {
            entry.disconnect_deadline = None;
        } else if entry.disconnect_deadline.is_none() {
            entry.disconnect_deadline = Some(self.settings.grace_from(self.at.now, entry.is_restored));
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
        entry.saved = Some(record);
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
        entry.session_write = u64::MAX;
        if let Some(agent) = &mut entry.agent {
            agent.session = entry.record.session;
            if agent.last_report.is_none() {
                entry.record.condition.clone_from(&record.condition);
                entry.record.before = record.before;
            }
        }
        entry.saved = Some(record);
        if let Some(reporter) = entry.reporter {
            self.hello(reporter);
        }
    }

    /// Ends the streams of all agents that report here, so that they connect to other instances.
    pub(super) fn end_reporters(&mut self) {
        let reporters: Vec<StreamId> = self.entries.values().filter_map(|entry| entry.reporter).collect();
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
            if entry.reporter.is_some()
                || entry.record.controller.as_ref() == Some(&self.ownership.controller)
            {
                continue;
            }
            if !self.ownership.owns(&entry.record) {
                entry.disconnect_deadline = None;
                continue;
            }
            // An instance that is lost may still have the streams of its agents, which detect that
            // at their next heartbeat.
            let is_released =
                Ownership::instance(&entry.record).is_some_and(|instance| released.contains(instance));
            let from = if is_released { now } else { now.saturating_add(self.settings.heartbeat_at_most()) };
            let deadline = self.settings.grace_from(from, entry.is_restored);
            if entry.streams.is_empty() {
                entry.disconnect_deadline.get_or_insert(deadline);
            } else {
                // The stream of the workload's Envoy is open here; that of its agent was open at
                // the instance that is not alive.
                entry.record.controller = Some(self.ownership.controller.clone());
                if entry.record.session > 0 {
                    entry.silence_deadline.get_or_insert(deadline);
                }
            }
            keys.push(key.clone());
        }
        for key in &keys {
            self.reconcile(key);
        }
    }
}
