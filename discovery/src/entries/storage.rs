//! What the store has of an entry, which writes are requested, and which report is acknowledged
//! once its write is stored.

use std::time::Duration;

use super::{Record, StreamId};

#[derive(Debug, Default)]
pub(super) struct Storage {
    /// The record last passed to the store or read from it.
    saved: Option<Record>,
    /// Numbers of the last requested and the last stored write.
    requested: u64,
    stored: u64,
    session: SessionWrite,
    pending_ack: Option<(u64, Ack)>,
}

/// The write that begins the session.
#[derive(Clone, Copy, Debug)]
enum SessionWrite {
    /// It is requested with the next write.
    Next,
    Requested(u64),
}

impl Default for SessionWrite {
    fn default() -> Self {
        Self::Requested(0)
    }
}

/// What the agent is told when its report is stored.
#[derive(Clone, Debug)]
pub(super) struct Ack {
    pub(super) stream: StreamId,
    pub(super) epoch: String,
    pub(super) generation: u64,
}

impl Storage {
    pub(super) fn contains_entry(&self) -> bool {
        self.saved.is_some()
    }

    /// Applies that the store has this record, which another process wrote, or has no entry any more.
    pub(super) fn observed(&mut self, record: Option<Record>) {
        self.saved = record;
    }

    pub(super) fn session_began(&mut self) {
        self.session = SessionWrite::Next;
    }

    pub(super) fn is_session_stored(&self) -> bool {
        matches!(self.session, SessionWrite::Requested(write) if self.stored >= write)
    }

    /// Requests a write of `record` if it must be stored, with the number after `writes`. A new
    /// probe time alone is stored only if the stored one is more than `interval` older.
    pub(super) fn request(&mut self, record: &Record, interval: Option<Duration>, writes: &mut u64) -> bool {
        let is_needed = match &self.saved {
            Some(saved) => is_worth_writing(saved, record, interval),
            None => *record != Record::default(),
        };
        if !is_needed || record.is_foreign() {
            return false;
        }
        *writes += 1;
        self.requested = *writes;
        if matches!(self.session, SessionWrite::Next) {
            self.session = SessionWrite::Requested(*writes);
        }
        self.saved = Some(record.clone());
        true
    }

    /// Returns the acknowledgement if everything is stored; otherwise [`Storage::confirm`] does.
    pub(super) fn acknowledge(&mut self, ack: Ack) -> Option<Ack> {
        self.pending_ack = Some((self.requested, ack));
        self.confirm(self.stored)
    }

    /// Applies that the store contains this write. Returns the acknowledgement that waited for it.
    pub(super) fn confirm(&mut self, write: u64) -> Option<Ack> {
        self.stored = self.stored.max(write);
        self.pending_ack.take_if(|(write, _)| *write <= self.stored).map(|(_, ack)| ack)
    }
}

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
