//! The rows of all machines, with the order in which they changed, so that each open page gets what it
//! lacks, in parts of limited size.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use discovery::entries::WorkloadView;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Number of rows of one event.
const PART: usize = 500;
/// Number of removed rows that are remembered. Beyond it, pages begin again.
const REMOVED: usize = 10_000;

/// The last change that a page has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Generation of the rows.
    generation: u64,
    /// Number of the last change that the page has.
    change: u64,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: BTreeMap<Arc<str>, Row>,
    /// The last change of each row, in order.
    changes: BTreeMap<u64, Arc<str>>,
    last_change: u64,
    /// Increases when removed rows are forgotten.
    generation: u64,
    removed: usize,
}

#[derive(Debug)]
struct Row {
    change: u64,
    /// JSON of the machine; `None` if it was removed.
    json: Option<Box<RawValue>>,
}

impl Rows {
    /// Replaces the rows by those of the workloads, and returns whether any row has changed.
    pub(super) fn update(&mut self, workloads: Vec<WorkloadView>) -> bool {
        let before = self.last_change;
        let mut found = Vec::with_capacity(workloads.len());
        for mut workload in workloads {
            // The time since the last report changes without an event.
            if let Some(agent) = &mut workload.agent {
                agent.last_report_ago_ms = None;
            }
            let key: Arc<str> = format!("{}/{}", workload.namespace, workload.name).into();
            let json = serde_json::value::to_raw_value(&workload).expect("the view is JSON");
            self.set(key.clone(), Some(json));
            found.push(key);
        }
        found.sort_unstable();
        let is_gone =
            |(key, row): &(&Arc<str>, &Row)| row.json.is_some() && found.binary_search(key).is_err();
        let gone: Vec<Arc<str>> = self.rows.iter().filter(is_gone).map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.set(key, None);
        }
        self.forget_removed();
        self.last_change != before
    }

    fn set(&mut self, key: Arc<str>, json: Option<Box<RawValue>>) {
        let change = self.last_change + 1;
        let text = |json: &Option<Box<RawValue>>| json.as_deref().map(|json| json.get().to_owned());
        match self.rows.entry(key.clone()) {
            Entry::Occupied(row) if text(&row.get().json) == text(&json) => return,
            Entry::Occupied(mut row) => {
                self.removed += usize::from(json.is_none());
                self.removed -= usize::from(row.get().json.is_none());
                self.changes.remove(&row.get().change);
                row.insert(Row { change, json });
            }
            Entry::Vacant(place) => {
                place.insert(Row { change, json });
            }
        }
        self.changes.insert(change, key);
        self.last_change = change;
    }

    fn forget_removed(&mut self) {
        if self.removed <= REMOVED {
            return;
        }
        self.rows.retain(|_, row| row.json.is_some());
        let rows = &self.rows;
        self.changes.retain(|_, key| rows.contains_key(key));
        self.removed = 0;
        self.generation += 1;
    }

    /// Returns the next part for a page, as `{"reset": false, "more": true, "rows": […], "gone":
    /// ["shop/pay-1"]}`, and moves its cursor; `None` if the page has all. With `reset`, the page
    /// discards its rows first; with `more`, another part follows.
    pub(super) fn next_part(&self, cursor: &mut Cursor) -> Option<Value> {
        let is_outdated = cursor.generation != self.generation;
        let reset = cursor.change == 0 || is_outdated;
        if reset {
            *cursor = Cursor { generation: self.generation, change: 0 };
        }
        let (mut rows, mut gone) = (Vec::new(), Vec::new());
        for (change, key) in self.changes.range(cursor.change + 1..).take(PART) {
            match self.rows.get(key).and_then(|row| row.json.as_deref()) {
                Some(json) => rows.push(json),
                None => gone.push(key),
            }
            cursor.change = *change;
        }
        if rows.is_empty() && gone.is_empty() && !is_outdated {
            return None;
        }
        let more = self.changes.range(cursor.change + 1..).next().is_some();
        Some(json!({"reset": reset, "more": more, "rows": rows, "gone": gone}))
    }
}

#[cfg(test)]
mod tests;
