//! Emits the effects that follow from the difference between an entry and its stored, published and
//! logged state.

use super::{DeletionReason, Effect, Entries, Event};
use crate::objects::Key;

impl Entries {
    /// Requests the write, the push and the log event that a change of the entry requires, and
    /// schedules its timer.
    pub(super) fn reconcile(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.storage.request(&entry.record, self.settings.probe_time_write, &mut self.writes) {
            self.effects.push(Effect::Write {
                key: key.clone(),
                write: self.writes,
                record: Some(Box::new(entry.record.clone())),
                session: entry.record.session,
            });
        }
        if entry.publish(key, &self.settings) {
            self.effects.push(Effect::Changed { key: key.clone() });
        }
        self.effects.extend(entry.transition_event(key).map(Effect::Event));
        entry.schedule(&mut self.timers, key);
    }

    /// Requests a push of the entry even if it has not changed.
    pub(super) fn emit_changed(&mut self, key: &Key) {
        self.effects.push(Effect::Changed { key: key.clone() });
    }

    /// Deletes the entry. Its streams wait for a new one.
    pub(super) fn delete(&mut self, key: &Key, reason: DeletionReason) {
        self.snapshot_needs.stop_waiting(key);
        let Some(mut entry) = self.entries.remove(key) else { return };
        entry.cancel_timer(&mut self.timers, key);
        self.registrations.replace(&key.namespace, entry.registrant.as_ref(), None);
        // In a shared store a manual entry is the operator's object and is not deleted.
        let is_deletable = entry.record.auto.is_some() || !self.settings.shared;
        if entry.storage.contains_entry() && is_deletable && !entry.record.is_foreign() {
            self.writes += 1;
            let session = entry.record.session;
            self.effects.push(Effect::Write { key: key.clone(), write: self.writes, record: None, session });
        }
        if entry.spec().is_some() {
            self.emit_changed(key);
        }
        self.emit(Event::Deleted { key: key.clone(), reason });
        self.rebind(entry.session.detach_all());
    }
}
