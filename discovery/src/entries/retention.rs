//! Keeps the entries that a snapshot needs although they are silent or unhealthy, and releases held
//! endpoints when the other machines have returned or the operator says so.

use std::collections::BTreeMap;
use std::mem;

use super::{Before, DeletionReason, Entries, Preserved};
use crate::objects::Key;

impl Entries {
    /// Updates what the last snapshot keeps, and deletes disconnected entries that it does not keep.
    pub(super) fn set_preserved(&mut self, preserved: BTreeMap<Key, Preserved>) {
        self.preserved = preserved;
        let release_at = self.at.now.saturating_add(self.settings.panic_threshold().window);
        for (key, preserved) in self.preserved.clone() {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            match preserved {
                Preserved::Recovering if self.ownership.owns(&entry.record) => {
                    // After a restart, all agents have time to reconnect.
                    let release_at = release_at.max(self.settings.earliest(entry.is_restored));
                    entry.release_deadline.get_or_insert(release_at);
                    self.schedule_timer(&key);
                }
                _ => entry.release_deadline = None,
            }
        }
        for key in mem::take(&mut self.disconnected_candidates) {
            self.delete_unless_kept(&key);
        }
    }

    /// Deletes a disconnected entry that no snapshot needs. One that is no endpoint is kept until
    /// its linger deadline.
    pub(super) fn delete_unless_kept(&mut self, key: &Key) {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.streams.is_empty()) else { return };
        let is_kept = match self.preserved.get(key) {
            Some(Preserved::Removed) => entry.linger_deadline.is_some(),
            preserved => preserved.is_some(),
        };
        if is_kept {
            self.disconnected_candidates.insert(key.clone());
        } else {
            self.delete(key, DeletionReason::Disconnected);
        }
    }

    /// Removes the endpoints that are held because too many agents became silent.
    pub(super) fn release_held(&mut self, namespace: Option<&str>, group: Option<&str>) {
        let held = self.preserved.iter().filter(|(_, preserved)| preserved.is_self_preserved());
        let held: Vec<Key> = held.map(|(key, _)| key.clone()).collect();
        for key in held {
            let auto = self.entries.get(&key).and_then(|entry| entry.record.auto.as_ref());
            let is_of_group = group.is_none_or(|group| auto.is_some_and(|auto| auto.group == group));
            if is_of_group && namespace.is_none_or(|namespace| namespace == key.namespace) {
                self.release(&key);
            }
        }
    }

    /// Lets the next snapshot remove a silent entry. A new report makes it an endpoint again. If the agent
    /// has returned, its first verdict decides.
    pub(super) fn release(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !self.ownership.owns(&entry.record) || !entry.is_silent() || entry.has_returned() {
            return;
        }
        entry.record.before = Some(Before::Unserved);
        (entry.release_deadline, entry.linger_deadline) = (None, None);
        if entry.streams.is_empty() && entry.record.auto.is_some() {
            self.disconnected_candidates.insert(key.clone());
        }
        self.reconcile(key);
    }
}
