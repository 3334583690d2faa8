//! Handles timeouts: lost streams, silence, missing probe results and delayed reports.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use super::entry::LastReport;
use super::{DeletionReason, Entries, Event, Reason, StreamId};
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
    pub(super) fn start_grace_period(&mut self, key: &Key, deadline: Duration) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if self.ownership.owns(&entry.record) {
            entry.disconnect_deadline = Some(deadline);
            entry.silence_deadline = (entry.record.session > 0).then_some(deadline);
            self.schedule_timer(key);
        }
    }

    /// Schedules a timer for the entry's earliest deadline. A deadline that moves to a later time
    /// keeps its timer, which then fires early without effect. That costs less than moving the
    /// timer at each heartbeat.
    pub(super) fn schedule_timer(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(due) = entry.due() else { return };
        if entry.timer_at.is_none_or(|timer_at| due < timer_at) {
            if let Some(timer_at) = entry.timer_at {
                self.deadlines.0.remove(&(timer_at, Timer::Entry(key.clone())));
            }
            entry.timer_at = Some(due);
            self.deadlines.0.insert((due, Timer::Entry(key.clone())));
        }
    }

    pub(super) fn cancel_timer(&mut self, key: &Key) {
        if let Some(timer_at) = self.entries.get_mut(key).and_then(|entry| entry.timer_at.take()) {
            self.deadlines.0.remove(&(timer_at, Timer::Entry(key.clone())));
        }
    }

    pub(super) fn pass_deadlines(&mut self) {
        while let Some(timer) = self.deadlines.pop(self.at.now) {
            match timer {
                Timer::Stream(stream) => self.apply_pending(stream),
                Timer::Entry(key) => self.pass_deadline(&key),
            }
        }
    }

    fn pass_deadline(&mut self, key: &Key) {
        let now = self.at.now;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.timer_at = None;
        if self.is_store_unreachable {
            // The deadlines are checked again when the store is reachable.
            return;
        }
        let passed =
            |deadline: &mut Option<Duration>| deadline.take_if(|deadline| *deadline <= now).is_some();
        let (verdict, mute, lost) = (
            passed(&mut entry.first_result_deadline),
            passed(&mut entry.silence_deadline),
            passed(&mut entry.disconnect_deadline),
        );
        if verdict {
            self.handle_no_result(key);
        }
        if lost {
            self.handle_disconnected(key);
        } else if mute {
            self.handle_silent(key);
        }
        self.schedule_timer(key);
    }

    /// Handles an agent that had no probe result in time.
    fn handle_no_result(&mut self, key: &Key) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.last_report_kind {
            Some(LastReport::NoProbe) => entry.set_no_probe(&self.settings, at),
            _ => {
                entry.set_health_checks(true);
                let reason = if entry.last_report_kind.is_some() {
                    Reason::AwaitingVerdict
                } else {
                    Reason::AwaitingFirstReport
                };
                entry.set_condition(&self.settings, at, reason, "no verdict yet", None);
            }
        }
        self.reconcile(key);
    }

    /// Handles an agent that does not report although a stream of the workload may be open.
    fn handle_silent(&mut self, key: &Key) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.record.condition.is_none() && entry.ignores_health() {
            return;
        }
        let text = match entry.reporter {
            Some(_) => "the stream is open, but no report was received for three heartbeats",
            None if entry.streams.is_empty() => {
                "the reporting stream was lost, and the other streams of the workload since"
            }
            None => "the reporting stream was lost, but another stream of the workload is open",
        };
        entry.set_condition(&self.settings, at, Reason::AgentSilent, text, None);
        self.emit(Event::Silent { key: key.clone() });
        self.reconcile(key);
    }

    /// Handles an entry whose last stream was lost longer ago than the grace period.
    fn handle_disconnected(&mut self, key: &Key) {
        let (at, settings) = (self.at, &self.settings);
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !entry.streams.is_empty() || !self.ownership.owns(&entry.record) {
            return;
        }
        let is_auto = entry.record.auto.is_some();
        if is_auto && self.config.incomplete && !entry.has_group(key, &self.config) {
            // The group may exist in a part of the configuration that could not be read.
            return;
        }
        if is_auto && !(self.may_keep && entry.may_linger(settings)) {
            return self.delete(key, DeletionReason::Disconnected);
        }
        if is_auto {
            entry.set_health_checks(true);
        } else if entry.record.condition.is_none() && entry.ignores_health() {
            return;
        }
        let text = "no stream of the workload is open";
        entry.set_condition(settings, at, Reason::Disconnected, text, None);
        self.reconcile(key);
        if is_auto {
            // The next snapshot decides whether the entry is kept as the last endpoint.
            self.disconnected_candidates.insert(key.clone());
            self.emit_changed(key);
        }
    }

    /// Updates the set of entries kept by the last snapshot, and deletes disconnected ones that are
    /// not kept.
    pub(super) fn set_kept(&mut self, kept: std::collections::BTreeSet<Key>) {
        for key in mem::take(&mut self.disconnected_candidates) {
            let lives = self.entries.get(&key).is_none_or(|entry| !entry.streams.is_empty());
            if kept.contains(&key) && !lives {
                self.disconnected_candidates.insert(key);
            } else if !lives {
                self.delete(&key, DeletionReason::Disconnected);
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
        self.extend_deadlines(self.settings.restart_grace);
    }

    pub(super) fn set_store_unreachable(&mut self, is_away: bool) {
        if !mem::replace(&mut self.is_store_unreachable, is_away) || is_away {
            return;
        }
        // Agents may have moved to other instances, which could not write that to the store either.
        let earliest = self.at.now.saturating_add(self.settings.disconnect_grace);
        self.extend_deadlines(earliest);
    }

    fn extend_deadlines(&mut self, earliest: Duration) {
        let keys: Vec<Key> = self.entries.keys().cloned().collect();
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key) {
                for deadline in [
                    &mut entry.first_result_deadline,
                    &mut entry.silence_deadline,
                    &mut entry.disconnect_deadline,
                ]
                .into_iter()
                .flatten()
                {
                    *deadline = (*deadline).max(earliest);
                }
            }
            self.schedule_timer(&key);
        }
    }
}
