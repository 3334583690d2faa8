//! Checks the state that the server exposes against the messages that it has received.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use discovery::entries::{Record, Status, WorkloadView};
use discovery::objects::Key;
use discovery_server::store::kubernetes::leases::{READ_INTERVAL, RENEWAL, VALIDITY};
use workload_health::State;

use super::{Invariants, Stream};
use crate::process::run_of;
use crate::world::Server;

/// Time until the other servers see a renewed Lease, with the requests before it.
const SEEN_AGAIN: Duration = Duration::from_secs(READ_INTERVAL.as_secs() * 3);

impl Invariants {
    /// Checks the exposed state after a step.
    pub fn look(&mut self, now: Duration, replica: usize, server: &Server) {
        let views = server.entries.view(now - server.started);
        let of_server = self.seen.keys().filter(|(of, _)| *of == replica);
        let mut gone: BTreeSet<Key> = of_server.map(|(_, key)| key.clone()).collect();
        for view in views {
            let key = Key::new(view.namespace.clone(), view.name.clone());
            gone.remove(&key);
            self.look_at(now, replica, key, Some(&view));
        }
        for key in gone {
            self.look_at(now, replica, key, None);
        }
    }

    /// Checks a server that started with this store: acknowledged reports are stored, and healthy
    /// entries are served.
    pub fn restored(&mut self, stored: &BTreeMap<Key, Record>, server: &Server) {
        let lost = self
            .acknowledged
            .iter()
            .find(|(key, session)| stored.get(*key).is_none_or(|record| record.session < **session));
        if let Some((key, session)) = lost {
            let text = format!(
                "{key}: a report of session {session} was acknowledged, but {:?} is stored",
                stored.get(key)
            );
            self.violation(|| text);
        }
        let served: BTreeSet<Key> =
            server.entries.workloads().filter(|it| it.served).map(|it| it.key).collect();
        for (key, record) in stored {
            let is_healthy = record.condition.as_ref().is_some_and(|it| it.status == Status::True);
            if is_healthy && self.is_there.contains(key) && !served.contains(key) {
                self.violation(|| format!("{key}: was healthy before the start, but is not served"));
            }
        }
    }

    fn look_at(&mut self, now: Duration, replica: usize, key: Key, view: Option<&WorkloadView>) {
        let mut seen = self.seen.get(&(replica, key.clone())).cloned().unwrap_or_default();
        let is_served = view.is_some_and(|view| view.endpoint == "served" && !view.preserved_as_last);
        let agent = view.and_then(|view| view.agent.as_ref());
        let order = agent.and_then(|agent| Some((run_of(agent.epoch.as_ref()?)?, agent.generation?)));
        if let (Some(order), false) = (order, seen.order_unchecked) {
            if seen.order.is_some_and(|before| order < before) {
                self.violation(|| format!("{key}: report {order:?} took effect after {:?}", seen.order));
            }
            seen.order = Some(order);
        }
        if is_served != seen.is_served {
            self.moved = now;
        }
        if is_served != seen.is_served && !seen.order_unchecked {
            let why = view.map_or("gone".to_owned(), |view| view.why.clone());
            let reason = view.and_then(|view| Some(view.condition.as_ref()?.condition.reason.to_string()));
            let reason = reason.as_deref();
            let ours = agent.filter(|agent| agent.kind == "app-health" && agent.connected);
            let state = ours.and(order).and_then(|order| self.states.get(&order)).copied();
            let is_right = if is_served {
                reason != Some("ProbeSucceeded") || state.is_none_or(|state| state == State::Healthy)
            } else {
                // Another server has created the object, and its condition follows.
                let is_new = self.replicas > 1 && view.is_some() && reason.is_none();
                let may_go = self.may_go(now, &key, reason, state);
                if may_go {
                    self.removed.insert(key.clone(), now);
                }
                may_go || is_new || self.is_removed_elsewhere(now, replica, &key)
            };
            if !is_right {
                let times = self.times.get(&key).cloned();
                self.violation(|| {
                    format!(
                        "{key}: served is {is_served}, {why}, of {state:?}; {seen:?}; {times:?}; server {replica}"
                    )
                });
            }
        }
        if is_served {
            self.known.insert(key.clone());
            self.moving.insert(key.clone());
        }
        seen.is_served = is_served;
        self.seen.insert((replica, key), seen);
    }

    /// Returns whether an endpoint may be removed for this reason; `None`: the entry was deleted.
    fn may_go(&self, now: Duration, key: &Key, reason: Option<&str>, state: Option<State>) -> bool {
        // One grace period applies to agents that have not reconnected since the start, another to
        // those that have.
        let passed = |since: Option<Duration>| {
            let grace = |since| if since == self.server_started { self.restart_grace } else { self.grace };
            since.is_some_and(|since| now >= since + grace(since))
        };
        let times = self.times.get(key).cloned().unwrap_or_default();
        // Of several servers only that of the agent decides, which may not know that it has returned elsewhere.
        let has_just_returned =
            |(since, until): (Duration, Duration)| now <= until + SEEN_AGAIN && passed(Some(since));
        let elsewhere = || {
            self.replicas > 1
                && (passed(times.no_reporter_since)
                    || times.gap.is_some_and(has_just_returned)
                    || self.is_lost(now, key))
        };
        match reason {
            None | Some("Disconnected") => {
                !self.is_there.contains(key) || passed(times.no_stream_since) || elsewhere()
            }
            Some("AgentSilent") => {
                passed(times.no_reporter_since) || now >= times.last_report_at + self.silence || elsewhere()
            }
            Some("ProbeFailed" | "Draining" | "Terminating") => {
                state.is_none_or(|state| state == State::Unhealthy)
            }
            _ => true,
        }
    }

    /// Returns whether another server had a reason to remove the endpoint, of which this one learns now.
    fn is_removed_elsewhere(&self, now: Duration, replica: usize, key: &Key) -> bool {
        let (from, to) = self.isolated[replica];
        let since = if now <= to + SEEN_AGAIN { from } else { now.saturating_sub(SEEN_AGAIN) };
        self.replicas > 1 && self.removed.get(key).is_some_and(|removed| *removed >= since)
    }

    /// Returns whether all streams of the entry are at servers that the others take for lost, because they
    /// have not renewed their Lease.
    fn is_lost(&self, now: Duration, key: &Key) -> bool {
        let streams = self.streams.values().filter(|stream| self.machines[stream.machine].0 == *key);
        let is_isolated = |stream: &Stream| {
            let (from, to) = self.isolated[stream.replica];
            to > from && now >= from + VALIDITY - RENEWAL && now <= to + SEEN_AGAIN
        };
        self.replicas > 1 && streams.into_iter().all(is_isolated)
    }
}
