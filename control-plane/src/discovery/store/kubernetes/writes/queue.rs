//! PURE. Whose turn it is: the urgent in the order of their coming, then the rest, and those that wait for a time when it has come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use discovery::objects::Key;

/// Each entry stands in it once at most.
#[derive(Debug, Default)]
pub(super) struct Queue {
    urgent: VecDeque<Key>,
    rest: VecDeque<Key>,
    delayed: BTreeSet<(Duration, Key)>,
    places: BTreeMap<Key, Place>,
    /// Nothing is to be had before this.
    held: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Urgent,
    Rest,
    Delayed(Duration),
}

impl Queue {
    /// Puts an entry in, or further ahead if it has become urgent. One that waits for its time goes on waiting.
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

    /// Puts an entry in that has its turn at `ready`.
    pub(super) fn delay(&mut self, key: Key, ready: Duration) {
        if let Some(Place::Delayed(old)) = self.places.insert(key.clone(), Place::Delayed(ready)) {
            self.delayed.remove(&(old, key.clone()));
        }
        self.delayed.insert((ready, key));
    }

    /// Takes back what was popped; nobody has a turn before `ready`.
    pub(super) fn hold(&mut self, (key, is_urgent): (Key, bool), ready: Duration) {
        let (queue, place) =
            if is_urgent { (&mut self.urgent, Place::Urgent) } else { (&mut self.rest, Place::Rest) };
        queue.push_front(key.clone());
        self.places.insert(key, place);
        self.held = Some(ready);
    }

    /// Takes out whose turn it is, and whether it is urgent.
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
                // One that has moved stands elsewhere too.
                if self.places.get(&key) == Some(&place) {
                    self.places.remove(&key);
                    return Some((key, place == Place::Urgent));
                }
            }
        }
        None
    }

    /// When somebody has a turn.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let is_ready = self.places.values().any(|place| !matches!(place, Place::Delayed(_)));
        let due = if is_ready { Some(Duration::ZERO) } else { self.delayed.first().map(|(ready, _)| *ready) };
        due.map(|due| self.held.map_or(due, |held| due.max(held)))
    }
}

#[cfg(test)]
mod tests;
