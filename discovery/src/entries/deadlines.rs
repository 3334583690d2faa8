//! Handles timeouts: lost streams, silence, missing probe results and delayed reports.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use super::entry::LastReport;
use super::{ConditionReason, DeletionReason, Entries, Event, StreamId};
use crate::objects::Key;

/// With fewer entries, no service has enough machines to hold their endpoints.
const MIN_MACHINES: usize = 3;

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
        let (no_result, silent, disconnected) = (
            passed(&mut entry.first_result_deadline),
            passed(&mut entry.silence_deadline),
            passed(&mut entry.disconnect_deadline),
        );
        let (lingered, released) = (passed(&mut entry.linger_deadline), passed(&mut entry.release_deadline));
        if no_result {
            self.handle_no_result(key);
        }
        if disconnected {
            self.handle_disconnected(key);
        } else if silent {
            self.handle_silent(key);
        }
        if released {
            self.release(key);
        }
        if lingered {
            self.delete_unless_kept(key);
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
                    ConditionReason::AwaitingVerdict
                } else {
                    ConditionReason::AwaitingFirstReport
                };
                entry.set_condition(&self.settings, at, reason, "no verdict yet", None);
            }
        }
        self.reconcile(key);
    }

    /// Handles an agent that does not report although a stream of the workload may be open.
    fn handle_silent(&mut self, key: &Key) {
        let at = self.at;
        let has_probe = self.has_group_probe(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        // That an agent has no probe, although its group has one, is known only from its reports.
        let is_claim_lost = entry.record.auto.is_some() && entry.reporter.is_none() && has_probe;
        if entry.record.condition.is_none() && entry.ignores_health() && !is_claim_lost {
            return;
        }
        entry.set_health_checks(true);
        // The next session has its own deadline.
        entry.first_result_deadline = None;
        let text = match entry.reporter {
            Some(_) => "the stream is open, but no report was received for three heartbeats",
            None if entry.streams.is_empty() => {
                "the reporting stream was lost, and the other streams of the workload since"
            }
            None => "the reporting stream was lost, but another stream of the workload is open",
        };
        entry.set_condition(&self.settings, at, ConditionReason::AgentSilent, text, None);
        self.emit(Event::Silent { key: key.clone() });
        self.reconcile(key);
    }

    /// Returns true if the entry is auto-registered from a group with a probe.
    pub(super) fn has_group_probe(&self, key: &Key) -> bool {
        let auto = self.entries.get(key).and_then(|entry| entry.record.auto.as_ref());
        let group = auto.map(|auto| Key::new(key.namespace.clone(), auto.group.clone()));
        let group = group.and_then(|group| self.config.groups.get(&group));
        group.is_some_and(|group| group.group.probe.is_some())
    }

    /// Handles an entry whose last stream was lost longer ago than the grace period.
    fn handle_disconnected(&mut self, key: &Key) {
        let (at, settings) = (self.at, &self.settings);
        let has_enough = settings.max_silent_percent < 100 && self.entries.len() >= MIN_MACHINES;
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !entry.streams.is_empty() || !self.ownership.owns(&entry.record) {
            return;
        }
        let is_auto = entry.record.auto.is_some();
        if is_auto && self.config.incomplete && !entry.has_group(key, &self.config) {
            // The group may exist in a part of the configuration that could not be read.
            return;
        }
        let may_be_kept = self.may_keep && entry.may_linger(settings);
        let may_be_held = has_enough && (entry.is_served(settings) || entry.is_silent());
        if is_auto && !may_be_kept && !may_be_held {
            return self.delete(key, DeletionReason::Disconnected);
        }
        if is_auto {
            entry.set_health_checks(true);
        } else if entry.record.condition.is_none() && entry.ignores_health() {
            return;
        }
        let text = "no stream of the workload is open";
        entry.set_condition(settings, at, ConditionReason::Disconnected, text, None);
        let lingers = is_auto && may_be_held;
        entry.linger_deadline = lingers.then(|| at.now.saturating_add(settings.panic_threshold().window));
        self.reconcile(key);
        if is_auto {
            // The next snapshots decide whether the entry is kept as an endpoint.
            self.disconnected_candidates.insert(key.clone());
            self.emit_changed(key);
        }
    }

    /// Restarts the grace period after the process was suspended: reports may wait in the sockets,
    /// and agents may have to reconnect.
    pub(super) fn resume(&mut self) {
        let now = self.at.now;
        self.settings.restart_grace = now.saturating_add(self.restart_grace_length);
        for stream in self.streams.values_mut() {
            stream.opened = now;
        }
        self.entries.values_mut().for_each(|entry| entry.is_restored = true);
        self.extend_deadlines(self.settings.restart_grace);
    }

    pub(super) fn set_store_unreachable(&mut self, is_unreachable: bool) {
        if !mem::replace(&mut self.is_store_unreachable, is_unreachable) || is_unreachable {
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
