//! Handles timeouts: lost streams, silence, missing probe results and delayed reports.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use super::entry::Level;
use super::{Entries, Event, Gone, Reason, Status, StreamId};
use crate::objects::Key;

/// Timers ordered by time.
#[derive(Debug, Default)]
pub(super) struct Deadlines(BTreeSet<(Duration, Timer)>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Stream(StreamId),
    Entry(Key),
}

impl Deadlines {
    pub(super) fn next(&self) -> Option<Duration> {
        self.0.first().map(|(due, _)| *due)
    }

    pub(super) fn add_stream(&mut self, due: Duration, stream: StreamId) {
        self.0.insert((due, Timer::Stream(stream)));
    }

    fn pop(&mut self, now: Duration) -> Option<Timer> {
        if self.0.first()?.0 > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }
}

impl Entries {
    /// Sets the time at which the entry counts as lost unless its agent connects before.
    pub(super) fn miss(&mut self, key: &Key, deadline: Duration) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.is_owned(&self.settings, &self.controller, self.alive.as_ref()) {
            entry.lost = Some(deadline);
            entry.mute = (entry.record.session > 0).then_some(deadline);
            self.arm(key);
        }
    }

    /// Schedules a timer for the entry's earliest deadline. A deadline that moves to a later time
    /// keeps its timer, which then fires early without effect. That costs less than moving the
    /// timer at each heartbeat.
    pub(super) fn arm(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(due) = entry.due() else { return };
        if entry.armed.is_none_or(|armed| due < armed) {
            if let Some(armed) = entry.armed {
                self.deadlines.0.remove(&(armed, Timer::Entry(key.clone())));
            }
            entry.armed = Some(due);
            self.deadlines.0.insert((due, Timer::Entry(key.clone())));
        }
    }

    pub(super) fn disarm(&mut self, key: &Key) {
        if let Some(armed) = self.entries.get_mut(key).and_then(|entry| entry.armed.take()) {
            self.deadlines.0.remove(&(armed, Timer::Entry(key.clone())));
        }
    }

    pub(super) fn pass_deadlines(&mut self) {
        while let Some(timer) = self.deadlines.pop(self.at.now) {
            match timer {
                Timer::Stream(stream) => self.apply_held(stream),
                Timer::Entry(key) => self.pass_deadline(&key),
            }
        }
    }

    fn pass_deadline(&mut self, key: &Key) {
        let now = self.at.now;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.armed = None;
        if self.is_store_away {
            // The deadlines are checked again when the store is reachable.
            return;
        }
        let passed =
            |deadline: &mut Option<Duration>| deadline.take_if(|deadline| *deadline <= now).is_some();
        let (verdict, mute, lost) =
            (passed(&mut entry.verdict), passed(&mut entry.mute), passed(&mut entry.lost));
        if verdict {
            self.no_verdict(key);
        }
        if lost {
            self.lose(key);
        } else if mute {
            self.silence(key);
        }
        self.arm(key);
    }

    /// Handles an agent that had no probe result in time.
    fn no_verdict(&mut self, key: &Key) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.level {
            Some(Level::NoProbe) => entry.set_no_probe(&self.settings, at),
            _ => {
                entry.set_health_checks(true);
                let reason =
                    if entry.level.is_some() { Reason::AwaitingVerdict } else { Reason::AwaitingFirstReport };
                entry.set(&self.settings, at, Status::Unknown, reason, "no verdict yet", None);
            }
        }
        self.settle(key);
    }

    /// Handles an agent that does not report although a stream of the workload may be open.
    fn silence(&mut self, key: &Key) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.record.condition.is_none() && entry.is_unchecked() {
            return;
        }
        let text = match entry.reporter {
            Some(_) => "the stream is open, but no report was received for three heartbeats",
            None if entry.streams.is_empty() => {
                "the reporting stream was lost, and the other streams of the workload since"
            }
            None => "the reporting stream was lost, but another stream of the workload is open",
        };
        entry.set(&self.settings, at, Status::Unknown, Reason::AgentSilent, text, None);
        self.note(Event::Silent { key: key.clone() });
        self.settle(key);
    }

    /// Handles an entry whose last stream was lost longer ago than the grace period.
    fn lose(&mut self, key: &Key) {
        let (at, settings) = (self.at, &self.settings);
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !entry.streams.is_empty() || !entry.is_owned(settings, &self.controller, self.alive.as_ref()) {
            return;
        }
        let is_auto = entry.record.auto.is_some();
        if is_auto && self.config.incomplete && !entry.has_group(key, &self.config) {
            // The group may exist in a part of the configuration that could not be read.
            return;
        }
        if is_auto && !(self.may_keep && entry.may_linger(settings)) {
            return self.delete(key, Gone::Disconnected);
        }
        if is_auto {
            entry.set_health_checks(true);
        } else if entry.record.condition.is_none() && entry.is_unchecked() {
            return;
        }
        let text = "no stream of the workload is open";
        entry.set(settings, at, Status::Unknown, Reason::Disconnected, text, None);
        self.settle(key);
        if is_auto {
            // The next snapshot decides whether the entry is kept as the last endpoint.
            self.lingering.insert(key.clone());
            self.changed(key);
        }
    }

    /// Updates the set of entries kept by the last snapshot, and deletes disconnected ones that are
    /// not kept.
    pub(super) fn keep(&mut self, kept: std::collections::BTreeSet<Key>) {
        for key in mem::take(&mut self.lingering) {
            let lives = self.entries.get(&key).is_none_or(|entry| !entry.streams.is_empty());
            if kept.contains(&key) && !lives {
                self.lingering.insert(key);
            } else if !lives {
                self.delete(&key, Gone::Disconnected);
            }
        }
        self.kept = kept;
    }

    /// Restarts the grace period after the process was suspended: reports may wait in the sockets,
    /// and agents may have to reconnect.
    pub(super) fn resume(&mut self) {
        let now = self.at.now;
        self.settings.restart_grace = now.saturating_add(self.restart_grace);
        for stream in self.streams.values_mut() {
            stream.opened = now;
        }
        self.entries.values_mut().for_each(|entry| entry.is_restored = true);
        self.put_off(self.settings.restart_grace);
    }

    pub(super) fn store_away(&mut self, is_away: bool) {
        if !mem::replace(&mut self.is_store_away, is_away) || is_away {
            return;
        }
        // Agents may have moved to other instances, which could not write that to the store either.
        let earliest = self.at.now.saturating_add(self.settings.disconnect_grace);
        self.put_off(earliest);
    }

    fn put_off(&mut self, earliest: Duration) {
        let keys: Vec<Key> = self.entries.keys().cloned().collect();
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key) {
                for deadline in [&mut entry.verdict, &mut entry.mute, &mut entry.lost].into_iter().flatten() {
                    *deadline = (*deadline).max(earliest);
                }
            }
            self.arm(&key);
        }
    }
}
