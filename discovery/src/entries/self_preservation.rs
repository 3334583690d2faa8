//! Applies what snapshots preserve to the entries, and ends self-preservation when the other
//! machines have returned or the operator says so.

use std::collections::BTreeMap;

use super::entry::Entry;
use super::{Before, DeletionReason, Entries, Preserved};
use crate::objects::Key;

impl Entries {
    /// Updates what the last snapshot preserves, and deletes disconnected entries that it does not
    /// need.
    pub(super) fn set_preserved(&mut self, preserved: BTreeMap<Key, Preserved>) {
        let end = self.at.now.saturating_add(self.settings.removal_limits().window);
        for (key, preserved) in &preserved {
            let Some(entry) = self.entries.get_mut(key) else { continue };
            if *preserved == Preserved::Recovering && self.ownership.owns(&entry.record) {
                // After a restart, all agents have time to reconnect.
                entry.retention.end_self_preservation(end.max(entry.liveness.earliest(&self.settings)));
                entry.schedule(&mut self.timers, key);
            } else {
                entry.retention.continue_self_preservation();
            }
        }
        for key in self.snapshot_needs.replace(preserved) {
            self.delete_unless_needed(&key);
        }
    }

    /// Deletes a disconnected entry that no snapshot needs. Its agent may have moved to another instance
    /// since it was lost here.
    pub(super) fn delete_unless_needed(&mut self, key: &Key) {
        let is_lost = |entry: &&Entry| !entry.session.is_connected() && self.ownership.owns(&entry.record);
        let Some(entry) = self.entries.get(key).filter(is_lost) else { return };
        if self.snapshot_needs.contains(key, &entry.retention) {
            self.snapshot_needs.await_snapshot(key);
        } else {
            self.delete(key, DeletionReason::Disconnected);
        }
    }

    /// Ends the self-preservation of the endpoints of a namespace and a group, if they are given.
    pub(super) fn release(&mut self, namespace: Option<&str>, group: Option<&str>) {
        let preserved = self.snapshot_needs.iter().filter(|(_, preserved)| preserved.is_self_preserved());
        let keys: Vec<Key> = preserved.map(|(key, _)| key.clone()).collect();
        for key in keys {
            let auto = self.entries.get(&key).and_then(|entry| entry.record.auto.as_ref());
            let is_of_group = group.is_none_or(|group| auto.is_some_and(|auto| auto.group == group));
            if is_of_group && namespace.is_none_or(|namespace| namespace == key.namespace) {
                self.end_self_preservation(&key);
            }
        }
    }

    /// Lets the next snapshot remove a silent entry. A new report makes it an endpoint again. If the agent
    /// has returned, its first verdict decides.
    pub(super) fn end_self_preservation(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !self.ownership.owns(&entry.record) || !entry.is_silent() || entry.has_returned() {
            return;
        }
        entry.record.before = Some(Before::Unserved);
        entry.retention.stop();
        if !entry.session.is_connected() && entry.record.auto.is_some() {
            self.snapshot_needs.await_snapshot(key);
        }
        self.reconcile(key);
    }
}
