//! Applies health reports to the conditions of entries.

use std::time::Duration;

use workload_health::text::printable;
use workload_health::{HealthReport, Report, State, WorkloadProbe};

use super::entry::Entry;
use super::session::LastReport;
use super::storage::Ack;
use super::{
    Code, ConditionReason, Entries, Event, RejectionReason, ReportOutcome, Settings, StepTime, StreamId,
    Timestamp, content,
};
use crate::objects::Key;

impl Entries {
    pub(super) fn report(&mut self, id: StreamId, report: Report) {
        let Some(stream) = self.streams.get_mut(id) else {
            // The stream was superseded or rejected shortly before.
            return self.emit(Event::Report(ReportOutcome::Stale));
        };
        if stream.target.is_none() {
            return self.emit(Event::Report(ReportOutcome::Rejected));
        }
        if let Report::AppHealth(report) = &report
            && stream.newest.accept(report) == ReportOutcome::Stale
        {
            return self.emit(Event::Report(ReportOutcome::Stale));
        }
        stream.pending_report = Some(report);
        self.apply_pending(id);
    }

    /// Applies the pending report of a stream, or delays it if the rate limit is exceeded.
    pub(super) fn apply_pending(&mut self, id: StreamId) {
        let now = self.at.now;
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.bound.is_none() || stream.pending_report.is_none() {
            return;
        }
        match stream.rate.take(now) {
            Ok(()) => self.apply_pending_now(id),
            Err(due) => self.timers.set_stream(due, id),
        }
    }

    /// Applies the pending report of a stream regardless of the rate limit.
    pub(super) fn apply_pending_now(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(key) = stream.bound.clone() else { return };
        let Some(report) = stream.pending_report.take() else { return };
        let Some(entry) = self.entries.get(&key) else { return };
        let service_account = entry.spec().and_then(|spec| spec.service_account.clone());
        if !stream.may_report_on(&key.namespace, service_account.as_deref()) {
            let text = format!("entry {key} requires another service account");
            return self.reject(id, Code::PermissionDenied, RejectionReason::Identity, text);
        }
        let is_app_health_agent = stream.node.app_health;
        if !is_app_health_agent && self.is_session_of_another(id, &key) {
            return self.reject_supersession(id, &key);
        }
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.last_istio_report = (!is_app_health_agent).then(|| report.clone());
        if entry.session.reporter() != Some(id) {
            if is_app_health_agent {
                return self.emit(Event::Report(ReportOutcome::Stale));
            }
            self.begin_session(id, &key);
        }
        let outcome = match &report {
            Report::AppHealth(report) if is_app_health_agent => self.apply(&key, report),
            Report::AppHealth(_) => ReportOutcome::Stale,
            Report::Istio { healthy, message } => {
                self.apply_istio_report(&key, *healthy, message, is_app_health_agent)
            }
        };
        self.reconcile(&key);
        self.emit(Event::Report(outcome));
        if outcome == ReportOutcome::Stale {
            return;
        }
        if let Report::AppHealth(report) = report {
            let HealthReport { epoch, generation, .. } = report;
            self.acknowledge_when_stored(&key, Ack { stream: id, epoch, generation });
        }
    }

    /// Applies a report of an app-health agent.
    fn apply(&mut self, key: &Key, report: &HealthReport) -> ReportOutcome {
        let at = self.at;
        let group =
            self.entries.get(key).and_then(|entry| entry.record.auto.as_ref()).map(|auto| &auto.group);
        let group = group.and_then(|group| {
            self.config.groups.get(&Key::new(key.namespace.clone(), group.clone())).cloned()
        });
        let probe = group.as_ref().and_then(|group| group.group.probe.as_ref());
        let Some(entry) = self.entries.get_mut(key) else { return ReportOutcome::Stale };
        let outcome = entry.session.accept(report, at.now);
        if outcome == ReportOutcome::Stale {
            return outcome;
        }
        entry.liveness.reported(&self.settings, at.now);
        entry.accounted_for |=
            report.state == State::Unhealthy && Duration::from_millis(report.since_ms) <= at.now;
        entry.apply_health_report(&self.settings, at, report, probe);
        outcome
    }

    /// Applies an Istio health report.
    fn apply_istio_report(
        &mut self,
        key: &Key,
        healthy: bool,
        message: &str,
        is_app_health_agent: bool,
    ) -> ReportOutcome {
        let at = self.at;
        let Some(entry) = self.entries.get_mut(key) else { return ReportOutcome::Stale };
        let outcome = entry.session.accept_istio(at.now);
        if outcome == ReportOutcome::Stale {
            return outcome;
        }
        if is_app_health_agent {
            entry.liveness.reported(&self.settings, at.now);
        }
        let reason = if healthy { ConditionReason::ProbeSucceeded } else { ConditionReason::ProbeFailed };
        let message = if healthy { String::new() } else { printable(message) };
        let known = entry.record.condition.as_ref().map(|condition| condition.reason);
        let is_known_sick = matches!(
            known,
            Some(ConditionReason::ProbeFailed | ConditionReason::Draining | ConditionReason::Terminating)
        );
        if is_app_health_agent && !healthy && is_known_sick {
            // The agent sends the exact reason after it receives the server's hello.
            return ReportOutcome::Applied;
        }
        entry.set_probe_result(&self.settings, at, reason, &message, Some(at.wall));
        if known == Some(reason) { outcome } else { ReportOutcome::Applied }
    }
}

impl Entry {
    /// Sets the condition of the entry from the agent's report.
    fn apply_health_report(
        &mut self,
        settings: &Settings,
        at: StepTime,
        report: &HealthReport,
        probe: Option<&WorkloadProbe>,
    ) {
        let ago = report.last_probe_ago_ms.map(Duration::from_millis);
        let probed = ago.map(|ago| at.wall.minus(ago));
        // The interval in the report takes precedence: an agent that is configured by a file may
        // have another probe than the group.
        let interval = report.interval_ms.map(Duration::from_millis);
        let interval = interval.or(probe.map(|probe| probe.period.saturating_add(probe.timeout)));
        let is_stalled = interval.zip(ago).is_some_and(|(interval, ago)| ago > interval.saturating_mul(3));
        match (report.state, report.reason.as_str()) {
            (State::Unhealthy, "Draining") => {
                self.set_probe_result(settings, at, ConditionReason::Draining, &report.message, probed);
            }
            (State::Unhealthy, "Terminating") => {
                self.set_probe_result(settings, at, ConditionReason::Terminating, &report.message, probed);
            }
            (State::Healthy | State::Unhealthy, _) if is_stalled => {
                let text = "the agent is connected, but its last probe is older than three probe intervals";
                self.session.set_last_report(LastReport::Verdict);
                self.liveness.result_arrived();
                self.set_health_checks(true);
                self.set_condition(settings, at, ConditionReason::ProberStalled, text, probed);
            }
            (State::Healthy, _) => {
                self.set_probe_result(settings, at, ConditionReason::ProbeSucceeded, "", probed);
            }
            (State::Unhealthy, _) => {
                self.set_probe_result(settings, at, ConditionReason::ProbeFailed, &report.message, probed);
            }
            (State::Unknown, "NoProbe") if probe.is_none() => {
                self.session.set_last_report(LastReport::NoProbe);
                self.liveness.result_arrived();
                self.set_no_probe(settings, at);
            }
            // If the group has a probe, the agent may not have received it yet.
            (State::Unknown, reason) => {
                let is_no_probe = reason == "NoProbe";
                self.session.set_last_report(if is_no_probe {
                    LastReport::NoProbe
                } else {
                    LastReport::Awaiting
                });
                let within = report.verdict_within_ms.map(Duration::from_millis);
                let within = within
                    .unwrap_or_else(|| content::time_to_first_result(probe))
                    .min(content::MAX_TIME_TO_RESULT);
                self.liveness.expect_result(at.now.saturating_add(within));
            }
        }
    }

    /// Sets the condition to True or False, and makes the entry health-checked.
    fn set_probe_result(
        &mut self,
        settings: &Settings,
        at: StepTime,
        reason: ConditionReason,
        message: &str,
        probed: Option<Timestamp>,
    ) {
        self.session.set_last_report(LastReport::Verdict);
        self.liveness.result_arrived();
        self.set_health_checks(true);
        self.set_condition(settings, at, reason, &printable(message), probed);
    }
}
