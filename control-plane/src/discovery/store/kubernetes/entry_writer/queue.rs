//! Order of the pending entries: urgent ones first in order of arrival, then the others; delayed
//! entries join when their time has come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use discovery::objects::Key;

/// Contains each entry at most once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    urgent: VecDeque<Key>,
    normal: VecDeque<Key>,
    delayed: BTreeSet<(Duration, Key)>,
    positions: BTreeMap<Key, Position>,
    /// No entry is returned before this time.
    blocked_until: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Urgent,
    Normal,
    Delayed(Duration),
}

impl Queue {
    /// Adds an entry, or moves it forward if it has become urgent. A delayed entry stays delayed.
    pub(super) fn push(&mut self, key: Key, is_urgent: bool) {
        match (self.positions.get(&key), is_urgent) {
            (None, false) => {
                self.normal.push_back(key.clone());
                self.positions.insert(key, Position::Normal);
            }
            (None | Some(Position::Normal), true) => {
                self.urgent.push_back(key.clone());
                self.positions.insert(key, Position::Urgent);
            }
            _ => {}
        }
    }

    /// Adds an entry that is not returned before `ready`.
    pub(super) fn delay(&mut self, key: Key, ready: Duration) {
        if let Some(Position::Delayed(old)) = self.positions.insert(key.clone(), Position::Delayed(ready)) {
            self.delayed.remove(&(old, key.clone()));
        }
        self.delayed.insert((ready, key));
    }

    /// Returns a popped entry to the front; no entry is popped before `ready`.
    pub(super) fn push_back_until(&mut self, (key, is_urgent): (Key, bool), ready: Duration) {
        let (queue, position) = if is_urgent {
            (&mut self.urgent, Position::Urgent)
        } else {
            (&mut self.normal, Position::Normal)
        };
        queue.push_front(key.clone());
        self.positions.insert(key, position);
        self.blocked_until = Some(ready);
    }

    /// Removes the next entry; returns it and whether it is urgent.
    pub(super) fn pop(&mut self, now: Duration) -> Option<(Key, bool)> {
        if self.blocked_until.is_some_and(|blocked_until| now < blocked_until) {
            return None;
        }
        self.blocked_until = None;
        while let Some((ready, _)) = self.delayed.first().filter(|(ready, _)| *ready <= now).cloned() {
            let (_, key) = self.delayed.pop_first()?;
            if self.positions.get(&key) == Some(&Position::Delayed(ready)) {
                self.positions.remove(&key);
                self.push(key, true);
            }
        }
        for (queue, position) in [(&mut self.urgent, Position::Urgent), (&mut self.normal, Position::Normal)]
        {
            while let Some(key) = queue.pop_front() {
                // An entry that was moved is also in another queue.
                if self.positions.get(&key) == Some(&position) {
                    self.positions.remove(&key);
                    return Some((key, position == Position::Urgent));
                }
            }
        }
        None
    }

    /// Returns when the next entry can be popped.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let is_ready = self.positions.values().any(|position| !matches!(position, Position::Delayed(_)));
        let due = if is_ready { Some(Duration::ZERO) } else { self.delayed.first().map(|(ready, _)| *ready) };
        due.map(|due| self.blocked_until.map_or(due, |blocked_until| due.max(blocked_until)))
    }
}

#[cfg(test)]
mod tests;
