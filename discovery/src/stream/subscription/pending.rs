//! Which resources of a subscription must be compared with the snapshot, so that a push costs what
//! changed and not what the peer subscribes to.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::snapshot::{Snapshot, SnapshotId};

#[derive(Debug, Default)]
pub(super) struct Pending {
    names: Names,
    /// The snapshot that all other names were compared with.
    compared: Option<SnapshotId>,
}

/// The names to compare.
#[derive(Debug, Default)]
pub(super) enum Names {
    #[default]
    All,
    Some(BTreeSet<Arc<str>>),
}

impl Pending {
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn add_all(&mut self) {
        self.names = Names::All;
    }

    pub(super) fn add(&mut self, name: Arc<str>) {
        if let Names::Some(names) = &mut self.names {
            names.insert(name);
        }
    }

    /// Adds what differs between the snapshot that was compared last and this one.
    pub(super) fn follow(&mut self, snapshot: &Snapshot) {
        match (&mut self.names, self.compared.as_ref().and_then(|id| snapshot.changed_since(id))) {
            (Names::Some(names), Some(changed)) => names.extend(changed.cloned()),
            _ => self.names = Names::All,
        }
        self.compared = Some(snapshot.id().clone());
    }

    /// Records that the peer was sent all differences, except for these names.
    pub(super) fn set_compared(&mut self, except: BTreeSet<Arc<str>>) {
        self.names = Names::Some(except);
    }
}

#[cfg(test)]
mod tests;
