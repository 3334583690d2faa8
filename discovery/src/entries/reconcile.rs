//! Emits the effects that follow from the difference between an entry and its stored, published and
//! logged state.

use std::mem;
use std::time::Duration;

use super::{DeletionReason, Effect, Entries, Event, Presence, Record, Workload};
use crate::objects::Key;

impl Entries {
    /// Requests the write, the push and the log event that a change of the entry requires, and
    /// schedules its timer.
    pub(super) fn reconcile(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_new = match &entry.saved {
            Some(saved) => is_worth_writing(saved, &entry.record, self.settings.probe_time_write),
            None => entry.record != Record::default(),
        };
        if is_new && !entry.record.is_foreign() {
            self.writes += 1;
            entry.write = self.writes;
            if entry.session_write == u64::MAX {
                entry.session_write = self.writes;
            }
            entry.saved = Some(entry.record.clone());
            self.effects.push(Effect::Write {
                key: key.clone(),
                write: self.writes,
                record: Some(Box::new(entry.record.clone())),
                session: entry.record.session,
            });
        }
        entry.accounted_for |= entry.is_served(&self.settings);
        // A lost stream alone needs no new snapshot.
        let workload = entry.workload(key, &self.settings).map(|workload| match workload.presence {
            Presence::Missing => Workload { presence: Presence::Reporting, ..workload },
            _ => workload,
        });
        let is_served = workload.as_ref().is_some_and(|workload| workload.served);
        if entry.last_published != workload {
            entry.last_published = workload;
            self.effects.push(Effect::Changed { key: key.clone() });
        }
        let condition = entry.record.condition.as_ref();
        let logged = condition.map(|condition| (condition.status, condition.reason));
        if entry.last_logged != logged {
            entry.last_logged = logged;
            let condition = condition.cloned();
            self.emit(Event::Transition { key: key.clone(), condition, served: is_served });
        }
        self.schedule_timer(key);
    }

    /// Requests a push of the entry even if it has not changed.
    pub(super) fn emit_changed(&mut self, key: &Key) {
        self.effects.push(Effect::Changed { key: key.clone() });
    }

    /// Deletes the entry. Its streams wait for a new one.
    pub(super) fn delete(&mut self, key: &Key, reason: DeletionReason) {
        self.cancel_timer(key);
        self.disconnected_candidates.remove(key);
        let Some(entry) = self.entries.remove(key) else { return };
        // In a shared store a manual entry is the operator's object and is not deleted.
        let is_deletable = entry.record.auto.is_some() || !self.settings.shared;
        if entry.saved.is_some() && is_deletable && !entry.record.is_foreign() {
            self.writes += 1;
            let session = entry.record.session;
            self.effects.push(Effect::Write { key: key.clone(), write: self.writes, record: None, session });
        }
        if entry.spec().is_some() {
            self.emit_changed(key);
        }
        self.emit(Event::Deleted { key: key.clone(), reason });
        self.rebind(entry.streams);
    }

    /// Removes an entry that was already deleted in the store.
    pub(super) fn remove_deleted(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            mem::take(&mut entry.saved);
        }
        self.delete(key, DeletionReason::Removed);
    }
}

/// Returns true if `new` must be stored. A new probe time alone is stored only if the stored one is
/// more than `interval` older.
fn is_worth_writing(old: &Record, new: &Record, interval: Option<Duration>) -> bool {
    let rest = |record: &Record| {
        let condition = record.condition.as_ref();
        let condition =
            condition.map(|condition| (condition.status, condition.reason, condition.last_transition_time));
        (record.session, record.connected_at, record.disconnected_at, record.before, condition)
    };
    if rest(old) != rest(new) || old.auto != new.auto || old.controller != new.controller {
        return true;
    }
    let probed = |record: &Record| record.condition.as_ref().and_then(|condition| condition.last_probe_time);
    match (interval, probed(old), probed(new)) {
        (Some(interval), Some(old), Some(new)) => old < new.minus(interval),
        (Some(_), None, Some(_)) => true,
        _ => false,
    }
}
