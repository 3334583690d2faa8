//! One entry: what is known of it, and what follows for its endpoint.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use workload_health::State;

use super::{
    At, Before, Condition, Reason, Record, Settings, Status, StreamId, Timestamp, UnknownPolicy, Workload,
};
use crate::objects::{Config, Key, ManualEntry, Spec};

/// Before the first word of an agent's protocol, `app-health/…`.
const OURS: &str = "app-health/";

/// An entry in memory.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// What should be stored.
    pub(super) record: Record,
    /// What was last handed to the store, or came from it.
    pub(super) saved: Option<Record>,
    /// What the operator wrote, for an entry that is not auto-registered.
    pub(super) manual: Option<Arc<ManualEntry>>,
    /// All streams of the workload, its Envoy's too.
    pub(super) streams: BTreeSet<StreamId>,
    /// The one that reports.
    pub(super) reporter: Option<StreamId>,
    /// Who reported last.
    pub(super) agent: Option<Agent>,
    /// What it said last.
    pub(super) level: Option<Level>,
    /// It was in the store when the process started.
    pub(super) is_restored: bool,
    /// Numbers of the last write that was asked for, of the last that is stored, and of the one that took the session.
    pub(super) write: u64,
    pub(super) stored: u64,
    pub(super) session_write: u64,
    /// To be acknowledged when `write` is stored.
    pub(super) owed: Option<Owed>,
    /// No stream is open: from then on it is disconnected.
    pub(super) lost: Option<Duration>,
    /// From then on its agent is silent.
    pub(super) mute: Option<Duration>,
    /// From then on there is no verdict.
    pub(super) verdict: Option<Duration>,
    /// The deadline that is being waited for.
    pub(super) armed: Option<Duration>,
    /// It was an endpoint in the life of this process, or ceased to be one.
    pub(super) is_news: bool,
    pub(super) takeovers: VecDeque<Duration>,
    /// What Envoys were last shown.
    pub(super) shown: Option<Workload>,
    /// Status and reason that were last told.
    pub(super) told: Option<(Status, Reason)>,
}

/// The peer of the current or last session.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) stream: StreamId,
    pub(super) app_health: bool,
    pub(super) version: Option<String>,
    pub(super) peer: SocketAddr,
    pub(super) session: u64,
    /// Epoch, generation and state of the newest report of the session.
    pub(super) accepted: Option<(String, u64, State)>,
    pub(super) last_report: Option<Duration>,
    pub(super) probe_version: Option<String>,
    pub(super) probe_nack: Option<String>,
}

/// What an agent said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Verdict,
    Awaiting,
    NoProbe,
}

/// A report whose acknowledgement waits for the store.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    pub(super) stream: StreamId,
    pub(super) epoch: String,
    pub(super) generation: u64,
    pub(super) write: u64,
}

impl Entry {
    /// One that the store knows.
    pub(super) fn stored(record: Record) -> Self {
        let told = record.condition.as_ref().map(|condition| (condition.status, condition.reason));
        Self { saved: Some(record.clone()), told, record, ..Self::default() }
    }

    /// The earliest deadline.
    pub(super) fn due(&self) -> Option<Duration> {
        [self.lost, self.mute, self.verdict].into_iter().flatten().min()
    }

    /// Where the workload is; absent as long as only its status is known.
    pub(super) fn spec(&self) -> Option<&Arc<Spec>> {
        match (&self.record.auto, &self.manual) {
            (Some(auto), _) => Some(&auto.spec),
            (None, Some(manual)) => Some(&manual.spec),
            (None, None) => None,
        }
    }

    /// Whether another controller has it.
    pub(super) fn is_foreign(&self) -> bool {
        self.record.controller.as_ref().is_some_and(|controller| !controller.starts_with(OURS))
    }

    /// Whether it is this instance that acts on silence: its own entries, and those of instances that do not live.
    pub(super) fn is_owned(&self, settings: &Settings, own: &str, alive: Option<&BTreeSet<String>>) -> bool {
        if !settings.shared {
            return true;
        }
        match &self.record.controller {
            None => false,
            Some(controller) if controller == own => true,
            Some(controller) => controller
                .strip_prefix(OURS)
                .is_some_and(|instance| alive.is_some_and(|alive| !alive.contains(instance))),
        }
    }

    /// Whether the group that it was made from is there.
    pub(super) fn has_group(&self, key: &Key, config: &Config) -> bool {
        let Some(auto) = &self.record.auto else { return false };
        config.groups.contains_key(&Key::new(key.namespace.clone(), auto.group.clone()))
    }

    /// Whether its health does not matter for its endpoint.
    pub(super) fn is_unchecked(&self) -> bool {
        match (&self.record.auto, &self.manual) {
            (Some(auto), _) => !auto.health_checks,
            (None, manual) => manual.as_ref().and_then(|manual| manual.health_checks) != Some(true),
        }
    }

    /// For auto-registered entries; on others the annotation is the operator's.
    pub(super) fn set_health_checks(&mut self, on: bool) {
        if let Some(auto) = &mut self.record.auto {
            auto.health_checks = on;
        }
    }

    /// Sets the condition. Its time of transition moves only with the status.
    pub(super) fn set(
        &mut self,
        settings: &Settings,
        at: At,
        status: Status,
        reason: Reason,
        message: &str,
        last_probe_time: Option<Timestamp>,
    ) {
        let before = self.before(settings);
        let old = self.record.condition.take();
        let was_unknown = old.as_ref().is_some_and(|old| old.status == Status::Unknown);
        self.record.before = match status {
            Status::Unknown if was_unknown => self.record.before,
            Status::Unknown => before,
            _ => None,
        };
        let last_transition_time = match &old {
            Some(old) if old.status == status => old.last_transition_time,
            _ => at.wall,
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

    /// The agent has no probe: what is auto-registered is served unchecked, a manual entry is what its operator made it.
    pub(super) fn set_no_probe(&mut self, settings: &Settings, at: At) {
        if self.record.auto.is_some() {
            self.record.condition = None;
            self.record.before = None;
            self.set_health_checks(false);
        } else {
            self.set(settings, at, Status::Unknown, Reason::NoProbe, "the agent has no probe", None);
        }
    }

    /// What it is at this moment, for later.
    fn before(&self, settings: &Settings) -> Option<Before> {
        let condition = self.record.condition.as_ref();
        match condition.map(|condition| condition.reason) {
            Some(Reason::Draining | Reason::Terminating) => Some(Before::Left),
            _ if self.is_served(settings) => Some(Before::Served),
            Some(_) => Some(Before::Unserved),
            None => None,
        }
    }

    /// Whether Envoys are sent there.
    pub(super) fn is_served(&self, settings: &Settings) -> bool {
        let Some(condition) = &self.record.condition else { return self.is_unchecked() };
        let is_lost = self.record.auto.is_some() && condition.reason == Reason::Disconnected;
        match condition.status {
            _ if self.is_unchecked() => true,
            Status::True => true,
            Status::False => false,
            Status::Unknown => {
                settings.unknown_policy == UnknownPolicy::Keep
                    && self.record.before == Some(Before::Served)
                    && !is_lost
            }
        }
    }

    /// Whether it may stay as a service's last endpoint: it did not leave, and was more than announced.
    fn is_keepable(&self) -> bool {
        let Some(condition) = &self.record.condition else { return false };
        let left = matches!(condition.reason, Reason::Draining | Reason::Terminating)
            || self.record.before == Some(Before::Left);
        !left && !self.was_never_known()
    }

    /// Whether it may stay though no stream of it is open.
    pub(super) fn may_linger(&self, settings: &Settings) -> bool {
        self.is_keepable() || (self.record.condition.is_none() && self.is_served(settings))
    }

    /// Unknown from the beginning.
    fn was_never_known(&self) -> bool {
        let condition = self.record.condition.as_ref();
        condition.is_none_or(|condition| condition.status == Status::Unknown) && self.record.before.is_none()
    }

    /// What Envoys may see.
    pub(super) fn workload(&self, key: &Key, settings: &Settings) -> Option<Workload> {
        let spec = self.spec()?.clone();
        let served = self.is_served(settings);
        let since = self.record.condition.as_ref().map(|condition| condition.last_transition_time);
        Some(Workload {
            key: key.clone(),
            spec,
            served,
            keepable: !served && self.is_keepable(),
            unserved_since: since.filter(|_| !served),
            awaited: !served && !self.is_news,
        })
    }
}
