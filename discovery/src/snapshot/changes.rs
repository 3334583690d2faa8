//! Records which names changed from snapshot to snapshot, so that a stream compares only these.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Number of previous snapshots that a snapshot can be compared with.
const SNAPSHOTS: usize = 16;
/// If more names change at once, streams compare all of theirs.
const NAMES: usize = 4096;

type Names = BTreeSet<Arc<str>>;

/// Identity of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct SnapshotId(Arc<()>);

impl PartialEq for SnapshotId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Debug, Default)]
pub(super) struct Changes {
    id: SnapshotId,
    /// Previous snapshots, each with the names that changed from it to the next one; the oldest is
    /// the first.
    previous: VecDeque<(SnapshotId, Arc<Names>)>,
}

impl Changes {
    /// Returns the record of the snapshot that follows `previous` and differs in these names.
    pub(super) fn after(previous: &Self, names: Names) -> Self {
        let mut history = VecDeque::new();
        if names.len() <= NAMES {
            history.clone_from(&previous.previous);
            history.push_back((previous.id.clone(), Arc::new(names)));
            if history.len() > SNAPSHOTS {
                history.pop_front();
            }
        }
        Self { id: SnapshotId::default(), previous: history }
    }

    pub(super) fn id(&self) -> &SnapshotId {
        &self.id
    }

    /// Returns the names that changed since a snapshot, some of them more than once, or `None` if
    /// that is not known.
    pub(super) fn since(&self, id: &SnapshotId) -> Option<impl Iterator<Item = &Arc<str>>> {
        let position = if *id == self.id {
            self.previous.len()
        } else {
            self.previous.iter().position(|(previous, _)| previous == id)?
        };
        Some(self.previous.range(position..).flat_map(|(_, names)| names.iter()))
    }
}

#[cfg(test)]
mod tests;
