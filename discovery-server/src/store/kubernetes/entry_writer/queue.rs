//! Order of the pending entries: urgent ones first in order of arrival, then the others; delayed
//! entries become urgent when their time has come.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use discovery::objects::Key;

/// Contains each entry at most once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    order: BTreeSet<(Position, Key)>,
    positions: BTreeMap<Key, Position>,
    arrivals: u64,
    /// No entry is returned before this time.
    blocked_until: Duration,
}

/// Urgent and normal entries are ordered by the number of their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Position {
    Urgent(u64),
    Normal(u64),
    Delayed(Duration),
}

impl Queue {
    fn insert(&mut self, key: Key, position: Position) {
        if let Some(old) = self.positions.insert(key.clone(), position) {
            self.order.remove(&(old, key.clone()));
        }
        self.order.insert((position, key));
    }

    fn remove(&mut self, entry: &(Position, Key)) {
        self.order.remove(entry);
        self.positions.remove(&entry.1);
    }

    /// Adds an entry, or moves it forward if it has become urgent. A delayed entry stays delayed.
    pub(super) fn push(&mut self, key: Key, is_urgent: bool) {
        self.arrivals += 1;
        match (self.positions.get(&key), is_urgent) {
            (None, false) => self.insert(key, Position::Normal(self.arrivals)),
            (None | Some(Position::Normal(_)), true) => self.insert(key, Position::Urgent(self.arrivals)),
            _ => {}
        }
    }

    /// Adds an entry that is not returned before `ready`.
    pub(super) fn delay(&mut self, key: Key, ready: Duration) {
        self.insert(key, Position::Delayed(ready));
    }

    /// Returns a popped entry to its position; no entry is popped before `ready`.
    pub(super) fn push_back_until(&mut self, (position, key): (Position, Key), ready: Duration) {
        self.insert(key, position);
        self.blocked_until = ready;
    }

    /// Removes the next entry.
    pub(super) fn pop(&mut self, now: Duration) -> Option<(Position, Key)> {
        if now < self.blocked_until {
            return None;
        }
        let first_delayed = (Position::Delayed(Duration::ZERO), Key::new("", ""));
        while let Some(due) = self.order.range(&first_delayed..).next().cloned()
            && due.0 <= Position::Delayed(now)
        {
            self.remove(&due);
            self.push(due.1, true);
        }
        let next = self.order.first().filter(|(position, _)| !matches!(position, Position::Delayed(_)))?;
        let next = next.clone();
        self.remove(&next);
        Some(next)
    }

    /// Returns when the next entry can be popped.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let due = match self.order.first()?.0 {
            Position::Delayed(ready) => ready,
            _ => Duration::ZERO,
        };
        Some(due.max(self.blocked_until))
    }
}

#[cfg(test)]
mod tests;
