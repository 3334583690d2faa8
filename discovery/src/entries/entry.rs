//! State of one entry in memory, and whether it is served.

use std::net::IpAddr;
use std::sync::Arc;

use super::liveness::Liveness;
use super::registration_limits::Registrant;
use super::retention::Retention;
use super::session::Session;
use super::storage::Storage;
use super::timers::{EntryTimer, Timers};
use super::{
    Before, Condition, ConditionReason, Event, Presence, Record, Settings, Status, StepTime, Timestamp,
    UnknownPolicy, Workload,
};
use crate::objects::{Config, Key, ManualEntry, Spec};

#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The record to be stored.
    pub(super) record: Record,
    /// The operator's WorkloadEntry, unless the entry is auto-registered.
    pub(super) manual: Option<Arc<ManualEntry>>,
    /// The agent that registered the entry; `None` for a manual entry.
    pub(super) registrant: Option<Registrant>,
    pub(super) session: Session,
    pub(super) storage: Storage,
    pub(super) liveness: Liveness,
    pub(super) retention: Retention,
    timer: EntryTimer,
    /// True if the entry was an endpoint since this process started, or became unhealthy since
    /// then.
    pub(super) accounted_for: bool,
    /// The lastTransitionTime that this process has set, or found to be in the future, and the steady time
    /// that it stands for.
    transition: Option<(Timestamp, Timestamp)>,
    /// The workload in the last published change.
    last_published: Option<Workload>,
    /// Status and reason in the last logged transition.
    last_logged: Option<(Status, ConditionReason)>,
}

impl Entry {
    /// Creates an entry from its stored record.
    pub(super) fn stored(record: Record) -> Self {
        let last_logged = record.condition.as_ref().map(|condition| (condition.status, condition.reason));
        // The identity is not stored. If the group names no service account, it is unknown until the agent
        // has reconnected.
        let registrant = record.auto.as_ref().and_then(|auto| {
            let source = auto.spec.address.parse::<IpAddr>().ok()?.into();
            Some(Registrant { service_account: auto.spec.service_account.clone(), source })
        });
        let mut entry = Self { last_logged, registrant, record: record.clone(), ..Self::default() };
        entry.storage.observed(Some(record));
        entry
    }

    /// Sets the timer for the earliest deadline.
    pub(super) fn schedule(&mut self, timers: &mut Timers, key: &Key) {
        let due = [self.liveness.due(), self.retention.due()].into_iter().flatten().min();
        if let Some(due) = due {
            timers.set_entry(&mut self.timer, due, key);
        }
    }

    pub(super) fn cancel_timer(&mut self, timers: &mut Timers, key: &Key) {
        timers.cancel_entry(&mut self.timer, key);
    }

    /// Applies that [`Timers::pop`] has returned the timer.
    pub(super) fn timer_fired(&mut self) {
        self.timer = EntryTimer::default();
    }

    /// Returns the spec; `None` as long as only the status of a manual entry is known.
    pub(super) fn spec(&self) -> Option<&Arc<Spec>> {
        match (&self.record.auto, &self.manual) {
            (Some(auto), _) => Some(&auto.spec),
            (None, Some(manual)) => Some(&manual.spec),
            (None, None) => None,
        }
    }

    /// Returns true if the WorkloadGroup of the auto-registered entry exists.
    pub(super) fn has_group(&self, key: &Key, config: &Config) -> bool {
        let Some(auto) = &self.record.auto else { return false };
        config.groups.contains_key(&Key::new(key.namespace.clone(), auto.group.clone()))
    }

    /// Returns true if the endpoint is served regardless of its health.
    pub(super) fn ignores_health(&self) -> bool {
        match (&self.record.auto, &self.manual) {
            (Some(auto), _) => !auto.health_checks,
            (None, manual) => manual.as_ref().and_then(|manual| manual.health_checks) != Some(true),
        }
    }

    /// Sets whether an auto-registered entry is health-checked. On a manual entry, that annotation
    /// belongs to the operator.
    pub(super) fn set_health_checks(&mut self, on: bool) {
        if let Some(auto) = &mut self.record.auto {
            auto.health_checks = on;
        }
    }

    /// Sets the condition. Its lastTransitionTime changes only with the status.
    pub(super) fn set_condition(
        &mut self,
        settings: &Settings,
        at: StepTime,
        reason: ConditionReason,
        message: &str,
        last_probe_time: Option<Timestamp>,
    ) {
        let status = reason.status();
        let before = self.before(settings);
        let old = self.record.condition.take();
        let was_unknown = old.as_ref().is_some_and(|old| old.status == Status::Unknown);
        let was_terminated = old.as_ref().is_some_and(|old| old.reason == ConditionReason::Terminating);
        self.record.before = match status {
            Status::Unknown if was_unknown => self.record.before,
            Status::Unknown => before,
            // Many agents that end at once count as silent.
            Status::False if reason == ConditionReason::Terminating && was_terminated => self.record.before,
            Status::False if reason == ConditionReason::Terminating => {
                before.filter(|before| *before == Before::Served)
            }
            _ => None,
        };
        let last_transition_time = match &old {
            Some(old) if old.status == status => old.last_transition_time,
            _ => {
                self.transition = Some((at.wall, at.steady));
                at.wall
            }
        };
        let last_probe_time = last_probe_time.or(old.and_then(|old| old.last_probe_time));
        self.record.condition = Some(Condition {
            status,
            reason,
            message: message.to_owned(),
            last_probe_time,
            last_transition_time,
        });
    }

    pub(super) fn set_awaiting_first_report(&mut self, settings: &Settings, at: StepTime) {
        self.set_condition(settings, at, ConditionReason::AwaitingFirstReport, "no report yet", None);
    }

    /// Applies that the agent has no probe: an auto-registered entry is served unchecked, a manual
    /// entry keeps what its annotation says.
    pub(super) fn set_no_probe(&mut self, settings: &Settings, at: StepTime) {
        if self.record.auto.is_some() {
            self.record.condition = None;
            self.record.before = None;
            self.set_health_checks(false);
        } else {
            self.set_condition(settings, at, ConditionReason::NoProbe, "the agent has no probe", None);
        }
    }

    /// Returns whether the entry is served now, to be stored when its condition becomes Unknown.
    fn before(&self, settings: &Settings) -> Option<Before> {
        let condition = self.record.condition.as_ref();
        match condition.map(|condition| condition.reason) {
            Some(ConditionReason::Draining | ConditionReason::Terminating) => Some(Before::Left),
            _ if self.is_served(settings) => Some(Before::Served),
            Some(_) => Some(Before::Unserved),
            None => None,
        }
    }

    /// Returns true if Envoys send requests to the endpoint.
    pub(super) fn is_served(&self, settings: &Settings) -> bool {
        let Some(condition) = &self.record.condition else { return self.ignores_health() };
        let is_lost = self.record.auto.is_some() && condition.reason == ConditionReason::Disconnected;
        match condition.status {
            _ if self.ignores_health() => true,
            Status::True => true,
            Status::False => false,
            Status::Unknown => {
                settings.unknown_policy == UnknownPolicy::Keep
                    && self.record.before == Some(Before::Served)
                    && !is_lost
            }
        }
    }

    /// Returns true if the entry may be preserved as the last endpoint of a service: it did not shut
    /// down, and a report about it was received.
    fn is_preservable(&self) -> bool {
        let Some(condition) = &self.record.condition else { return false };
        let left = matches!(condition.reason, ConditionReason::Draining | ConditionReason::Terminating)
            || self.record.before == Some(Before::Left);
        !left && !self.was_never_known()
    }

    /// Returns true if the entry may be the last endpoint although none of its streams is open.
    pub(super) fn may_be_last_endpoint(&self, settings: &Settings) -> bool {
        self.is_preservable() || (self.record.condition.is_none() && self.is_served(settings))
    }

    /// Returns true if no report about the entry was ever received.
    fn was_never_known(&self) -> bool {
        let condition = self.record.condition.as_ref();
        condition.is_none_or(|condition| condition.status == Status::Unknown) && self.record.before.is_none()
    }

    /// Makes an entry that is not health-checked an endpoint again when its workload reconnects.
    pub(super) fn forget_disconnection(&mut self) {
        let reason = self.record.condition.as_ref().map(|condition| condition.reason);
        if reason == Some(ConditionReason::Disconnected) {
            (self.record.condition, self.record.before) = (None, None);
            self.set_health_checks(false);
        }
    }

    /// Returns true if its agent became silent, or ended, while the entry was an endpoint.
    pub(super) fn is_silent(&self) -> bool {
        let reason = self.record.condition.as_ref().map(|condition| condition.reason);
        let reasons =
            [ConditionReason::AgentSilent, ConditionReason::Disconnected, ConditionReason::Terminating];
        reason.is_some_and(|reason| reasons.contains(&reason)) && self.record.before == Some(Before::Served)
    }

    /// Returns true if its agent has ended on request.
    pub(super) fn is_terminated(&self) -> bool {
        let condition = self.record.condition.as_ref();
        condition.is_some_and(|condition| condition.reason == ConditionReason::Terminating)
    }

    /// Returns true if the workload is connected again and not silent, although its agent may have no
    /// verdict yet. Istio's agent becomes the reporter only with its first report.
    pub(super) fn has_returned(&self) -> bool {
        self.session.is_connected() && self.liveness.expects_report()
    }

    /// Applies that the stored lastTransitionTime is this many seconds in the future.
    pub(super) fn move_transition(&mut self, seconds: i64) {
        let moved = |stored: Timestamp| Timestamp::from_seconds(stored.seconds().saturating_sub(seconds));
        self.transition = self.last_transition().map(|stored| (stored, moved(stored)));
    }

    pub(super) fn last_transition(&self) -> Option<Timestamp> {
        self.record.condition.as_ref().map(|condition| condition.last_transition_time)
    }

    fn presence(&self, served: bool) -> Presence {
        let since = self.last_transition().map(|since| match self.transition {
            Some((wall, steady)) if wall == since => steady,
            _ => since,
        });
        let is_lost = (!self.session.is_connected() && self.liveness.expects_stream())
            || (self.session.reporter().is_none() && self.liveness.expects_report());
        match since.filter(|_| !served && self.is_silent()) {
            Some(since) => Presence::Silent(since),
            None if served && is_lost => Presence::Missing,
            None => Presence::Reporting,
        }
    }

    /// Returns what snapshots are built from.
    pub(super) fn workload(&self, key: &Key, settings: &Settings) -> Option<Workload> {
        let spec = self.spec()?.clone();
        let served = self.is_served(settings);
        let since = self.last_transition();
        Some(Workload {
            key: key.clone(),
            spec,
            served,
            preservable: !served && self.is_preservable(),
            unserved_since: since.filter(|_| !served),
            presence: self.presence(served),
            accounted_for: served || self.accounted_for,
            source: self.registrant.as_ref().map(|registrant| registrant.source),
        })
    }

    /// Returns true if the entry as seen by Envoys differs from the last published one.
    pub(super) fn publish(&mut self, key: &Key, settings: &Settings) -> bool {
        self.accounted_for |= self.is_served(settings);
        // A lost stream alone needs no new snapshot.
        let workload = self.workload(key, settings).map(|workload| match workload.presence {
            Presence::Missing => Workload { presence: Presence::Reporting, ..workload },
            _ => workload,
        });
        let is_new = self.last_published != workload;
        if is_new {
            self.last_published = workload;
        }
        is_new
    }

    /// Returns the event if status or reason of the condition changed.
    pub(super) fn transition_event(&mut self, key: &Key) -> Option<Event> {
        let condition = self.record.condition.as_ref();
        let logged = condition.map(|condition| (condition.status, condition.reason));
        if self.last_logged == logged {
            return None;
        }
        self.last_logged = logged;
        let served = self.last_published.as_ref().is_some_and(|workload| workload.served);
        Some(Event::Transition { key: key.clone(), condition: condition.cloned(), served })
    }
}
