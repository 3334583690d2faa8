//! Timers of entries and streams, ordered by time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::StreamId;
use crate::objects::Key;

#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Duration, Timer)>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Stream(StreamId),
    Entry(Key),
}

/// The time for which the timer of an entry is set.
#[derive(Debug, Default)]
pub(super) struct EntryTimer(Option<Duration>);

impl Timers {
    pub(super) fn next(&self) -> Option<Duration> {
        self.0.first().map(|(due, _)| *due)
    }

    pub(super) fn set_stream(&mut self, due: Duration, stream: StreamId) {
        self.0.insert((due, Timer::Stream(stream)));
    }

    /// Sets the timer of an entry for its earliest deadline. A deadline that moves to a later time
    /// keeps its timer, which then fires early without effect. That costs less than moving the
    /// timer at each heartbeat.
    pub(super) fn set_entry(&mut self, timer: &mut EntryTimer, due: Duration, key: &Key) {
        if timer.0.is_none_or(|at| due < at) {
            self.cancel_entry(timer, key);
            timer.0 = Some(due);
            self.0.insert((due, Timer::Entry(key.clone())));
        }
    }

    pub(super) fn cancel_entry(&mut self, timer: &mut EntryTimer, key: &Key) {
        if let Some(at) = timer.0.take() {
            self.0.remove(&(at, Timer::Entry(key.clone())));
        }
    }

    /// Removes and returns the first timer that is due.
    pub(super) fn pop(&mut self, now: Duration) -> Option<Timer> {
        if self.0.first()?.0 > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }
}
