//! Order of the pending entries: urgent ones first in order of arrival, then the others; delayed
//! entries join when their time has come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use discovery::objects::Key;

/// Contains each entry at most once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    urgent: VecDeque<Key>,
    rest: VecDeque<Key>,
    delayed: BTreeSet<(Duration, Key)>,
    places: BTreeMap<Key, Place>,
    /// No entry is returned before this time.
    held: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Urgent,
    Rest,
    Delayed(Duration),
}

impl Queue {
    /// Adds an entry, or moves it forward if it has become urgent. A delayed entry stays delayed.
    pub(super) fn push(&mut self, key: Key, is_urgent: bool) {
        match (self.places.get(&key), is_urgent) {
            (None, false) => {
                self.rest.push_back(key.clone());
                self.places.insert(key, Place::Rest);
            }
            (None | Some(Place::Rest), true) => {
                self.urgent.push_back(key.clone());
                self.places.insert(key, Place::Urgent);
            }
            _ => {}
        }
    }

    /// Adds an entry that is not returned before `ready`.
    pub(super) fn delay(&mut self, key: Key, ready: Duration) {
        if let Some(Place::Delayed(old)) = self.places.insert(key.clone(), Place::Delayed(ready)) {
            self.delayed.remove(&(old, key.clone()));
        }
        self.delayed.insert((ready, key));
    }

    /// Returns a popped entry to the front; no entry is popped before `ready`.
    pub(super) fn hold(&mut self, (key, is_urgent): (Key, bool), ready: Duration) {
        let (queue, place) =
            if is_urgent { (&mut self.urgent, Place::Urgent) } else { (&mut self.rest, Place::Rest) };
        queue.push_front(key.clone());
        self.places.insert(key, place);
        self.held = Some(ready);
    }

    /// Removes the next entry; returns it and whether it is urgent.
    pub(super) fn pop(&mut self, now: Duration) -> Option<(Key, bool)> {
        if self.held.is_some_and(|held| now < held) {
            return None;
        }
        self.held = None;
        while let Some((ready, _)) = self.delayed.first().filter(|(ready, _)| *ready <= now).cloned() {
            let (_, key) = self.delayed.pop_first()?;
            if self.places.get(&key) == Some(&Place::Delayed(ready)) {
                self.places.remove(&key);
                self.push(key, true);
            }
        }
        for (queue, place) in [(&mut self.urgent, Place::Urgent), (&mut self.rest, Place::Rest)] {
            while let Some(key) = queue.pop_front() {
                // An entry that was moved is also in another queue.
                if self.places.get(&key) == Some(&place) {
                    self.places.remove(&key);
                    return Some((key, place == Place::Urgent));
                }
            }
        }
        None
    }

    /// Returns when the next entry can be popped.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let is_ready = self.places.values().any(|place| !matches!(place, Place::Delayed(_)));
        let due = if is_ready { Some(Duration::ZERO) } else { self.delayed.first().map(|(ready, _)| *ready) };
        due.map(|due| self.held.map_or(due, |held| due.max(held)))
    }
}

#[cfg(test)]
mod tests;
