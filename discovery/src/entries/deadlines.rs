//! Handles timeouts: lost streams, silence, missing probe results and delayed reports.

use std::mem;
use std::time::Duration;

use super::liveness::Passed;
use super::session::LastReport;
use super::timers::Timer;
use super::{ConditionReason, DeletionReason, Entries, Event};
use crate::objects::Key;

/// With fewer entries, no service has enough machines for self-preservation.
const MIN_MACHINES: usize = 3;

impl Entries {
    pub(super) fn pass_deadlines(&mut self) {
        while let Some(timer) = self.timers.pop(self.at.now) {
            match timer {
                Timer::Stream(stream) => self.apply_pending(stream),
                Timer::Entry(key) => self.pass_deadline(&key),
            }
        }
    }

    fn pass_deadline(&mut self, key: &Key) {
        let now = self.at.now;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.timer_fired();
        if self.is_store_unreachable {
            // The deadlines are checked again when the store is reachable.
            return;
        }
        let Passed { no_result, silent, disconnected } = entry.liveness.take_passed(now);
        let (is_entry_due, is_endpoint_due) = entry.retention.take_passed(now);
        if no_result {
            self.handle_no_result(key);
        }
        if disconnected {
            self.handle_disconnected(key);
        } else if silent {
            self.handle_silent(key);
        }
        if is_endpoint_due {
            self.end_self_preservation(key);
        }
        if is_entry_due {
            self.delete_unless_needed(key);
        }
        if let Some(entry) = self.entries.get_mut(key) {
            entry.schedule(&mut self.timers, key);
        }
    }

    /// Handles an agent that had no probe result in time.
    fn handle_no_result(&mut self, key: &Key) {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.session.last_report() {
            Some(LastReport::NoProbe) => entry.set_no_probe(&self.settings, at),
            _ => {
                entry.set_health_checks(true);
                let reason = if entry.session.last_report().is_some() {
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
        let is_claim_lost = entry.record.auto.is_some() && entry.session.reporter().is_none() && has_probe;
        if entry.record.condition.is_none() && entry.ignores_health() && !is_claim_lost {
            return;
        }
        entry.set_health_checks(true);
        // The next session has its own deadline.
        entry.liveness.result_arrived();
        let text = match entry.session.reporter() {
            Some(_) => "the stream is open, but no report was received for three heartbeats",
            None if !entry.session.is_connected() => {
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
        if entry.session.is_connected() || !self.ownership.owns(&entry.record) {
            return;
        }
        let is_auto = entry.record.auto.is_some();
        if is_auto && self.config.incomplete && !entry.has_group(key, &self.config) {
            // The group may exist in a part of the configuration that could not be read.
            return;
        }
        let may_be_last = self.may_keep && entry.may_be_last_endpoint(settings);
        // An agent that ended and does not return within the grace period is not part of a restart.
        let is_silent = entry.is_silent() && !entry.is_terminated();
        let may_be_preserved = has_enough && (entry.is_served(settings) || is_silent);
        if is_auto && !may_be_last && !may_be_preserved {
            return self.delete(key, DeletionReason::Disconnected);
        }
        if is_auto {
            entry.set_health_checks(true);
        } else if entry.record.condition.is_none() && entry.ignores_health() {
            return;
        }
        let text = "no stream of the workload is open";
        entry.set_condition(settings, at, ConditionReason::Disconnected, text, None);
        let until = || at.now.saturating_add(settings.removal_limits().window);
        entry.retention.set_entry_deadline((is_auto && may_be_preserved).then(until));
        self.reconcile(key);
        if is_auto {
            // The next snapshots decide whether the entry is preserved as an endpoint.
            self.snapshot_needs.await_snapshot(key);
            self.emit_changed(key);
        }
    }

    /// Restarts the grace period after the process was suspended: reports may wait in the sockets,
    /// and agents may have to reconnect.
    pub(super) fn resume(&mut self) {
        let now = self.at.now;
        self.settings.restart_grace = now.saturating_add(self.restart_grace_length);
        self.streams.resumed(now);
        self.entries.values_mut().for_each(|entry| entry.liveness.restarted());
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
        for (key, entry) in &mut self.entries {
            entry.liveness.extend(earliest);
            entry.schedule(&mut self.timers, key);
        }
    }
}
