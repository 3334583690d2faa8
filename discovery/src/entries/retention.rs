//! Decides how long disconnected entries and silent endpoints stay, from what snapshots preserve.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;

use super::Preserved;
use super::liveness::take_passed;
use crate::objects::Key;

/// How long one entry stays although its agent is silent.
#[derive(Debug, Default)]
pub(super) struct Retention {
    /// The entry stays until this time without an endpoint, since self-preservation may make it one
    /// again.
    entry_until: Option<Duration>,
    /// Self-preservation of the endpoint ends at this time unless more machines become silent.
    endpoint_until: Option<Duration>,
}

impl Retention {
    pub(super) fn set_entry_deadline(&mut self, until: Option<Duration>) {
        self.entry_until = until;
    }

    /// Stops both deadlines.
    pub(super) fn stop(&mut self) {
        (self.entry_until, self.endpoint_until) = (None, None);
    }

    /// Ends self-preservation of the endpoint at this time, unless its end is set already.
    pub(super) fn end_self_preservation(&mut self, at: Duration) {
        self.endpoint_until.get_or_insert(at);
    }

    pub(super) fn continue_self_preservation(&mut self) {
        self.endpoint_until = None;
    }

    /// Removes the deadlines that have passed. Returns whether that of the entry and that of the
    /// endpoint have.
    pub(super) fn take_passed(&mut self, now: Duration) -> (bool, bool) {
        (take_passed(&mut self.entry_until, now), take_passed(&mut self.endpoint_until, now))
    }

    pub(super) fn due(&self) -> Option<Duration> {
        [self.entry_until, self.endpoint_until].into_iter().flatten().min()
    }
}

/// The entries that the last snapshot preserves, and those that wait for the decision of the next.
#[derive(Debug, Default)]
pub(super) struct SnapshotNeeds {
    preserved: BTreeMap<Key, Preserved>,
    /// Entries whose last stream was lost and that are not deleted yet.
    undecided: BTreeSet<Key>,
}

impl SnapshotNeeds {
    /// Replaces what the last snapshot preserves. Returns the entries that waited for it.
    pub(super) fn replace(&mut self, preserved: BTreeMap<Key, Preserved>) -> BTreeSet<Key> {
        self.preserved = preserved;
        mem::take(&mut self.undecided)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Preserved> {
        self.preserved.get(key).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, Preserved)> {
        self.preserved.iter().map(|(key, preserved)| (key, *preserved))
    }

    pub(super) fn await_snapshot(&mut self, key: &Key) {
        self.undecided.insert(key.clone());
    }

    /// Applies that the entry is connected again or deleted.
    pub(super) fn stop_waiting(&mut self, key: &Key) {
        self.undecided.remove(key);
    }

    /// Returns true if the disconnected entry must not be deleted. One that is no endpoint stays
    /// until its own deadline.
    pub(super) fn contains(&self, key: &Key, retention: &Retention) -> bool {
        match self.get(key) {
            Some(Preserved::Removed) => retention.entry_until.is_some(),
            preserved => preserved.is_some(),
        }
    }
}
