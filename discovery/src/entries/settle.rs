//! Emits the effects that follow from the difference between an entry and its stored, published and
//! logged state.

use std::mem;
use std::time::Duration;

use super::{Effect, Entries, Event, Gone, Record};
use crate::objects::Key;

impl Entries {
    /// Requests the write, the push and the log event that a change of the entry requires.
    pub(super) fn settle(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_new = match &entry.saved {
            Some(saved) => is_worth_writing(saved, &entry.record, self.settings.probe_time_write),
            None => entry.record != Record::default(),
        };
        if is_new && !entry.is_foreign() {
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
        entry.is_news |= entry.is_served(&self.settings);
        let workload = entry.workload(key, &self.settings);
        let is_served = workload.as_ref().is_some_and(|workload| workload.served);
        if entry.shown != workload {
            entry.shown = workload;
            self.effects.push(Effect::Changed { key: key.clone() });
        }
        let condition = entry.record.condition.as_ref();
        let told = condition.map(|condition| (condition.status, condition.reason));
        if entry.told != told {
            entry.told = told;
            let condition = condition.cloned();
            self.note(Event::Transition { key: key.clone(), condition, served: is_served });
        }
    }

    /// Requests a push of the entry even if it has not changed.
    pub(super) fn changed(&mut self, key: &Key) {
        self.effects.push(Effect::Changed { key: key.clone() });
    }

    /// Deletes the entry. Its streams wait for a new one.
    pub(super) fn delete(&mut self, key: &Key, gone: Gone) {
        self.disarm(key);
        self.lingering.remove(key);
        let Some(entry) = self.entries.remove(key) else { return };
        // In a shared store a manual entry is the operator's object and is not deleted.
        let is_ours = entry.record.auto.is_some() || !self.settings.shared;
        if entry.saved.is_some() && is_ours && !entry.is_foreign() {
            self.writes += 1;
            let session = entry.record.session;
            self.effects.push(Effect::Write { key: key.clone(), write: self.writes, record: None, session });
        }
        if entry.spec().is_some() {
            self.changed(key);
        }
        self.note(Event::Deleted { key: key.clone(), gone });
        for id in entry.streams {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.unbind();
            }
            self.bind(id);
        }
    }

    /// Removes an entry that was already deleted in the store.
    pub(super) fn drop_deleted(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            mem::take(&mut entry.saved);
        }
        self.delete(key, Gone::ByHand);
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
