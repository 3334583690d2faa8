//! The last changes of each machine's condition, for display. No decision depends on them, and they do
//! not survive a restart.

use std::collections::{HashMap, VecDeque};

use discovery::entries::{ConditionReason, Event, Status, Timestamp};
use discovery::objects::Key;
use serde::Serialize;

/// Number of changes that are kept of each machine.
const CAPACITY: usize = 8;

/// A change of the condition of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionChange {
    pub at: Timestamp,
    /// Status and reason of the condition; `None` if it was removed.
    #[serde(flatten)]
    pub condition: Option<StatusAndReason>,
    /// True if Envoys send requests to the endpoint from then on.
    pub served: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StatusAndReason {
    pub status: Status,
    pub reason: ConditionReason,
}

#[derive(Debug, Default)]
pub(super) struct ConditionHistory(HashMap<Key, VecDeque<ConditionChange>>);

impl ConditionHistory {
    /// Records an event at the wall-clock time `at`.
    pub(super) fn record(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Transition { key, condition, served } => {
                let condition = condition.as_ref();
                let condition = condition
                    .map(|condition| StatusAndReason { status: condition.status, reason: condition.reason });
                let changes = self.0.entry(key.clone()).or_default();
                if changes.len() == CAPACITY {
                    changes.pop_front();
                }
                changes.push_back(ConditionChange { at, condition, served: *served });
            }
            Event::Deleted { key, .. } => {
                self.0.remove(key);
            }
            _ => {}
        }
    }

    /// Returns the changes of a machine, oldest first.
    pub(super) fn of(&self, key: &Key) -> Vec<ConditionChange> {
        self.0.get(key).into_iter().flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests;
