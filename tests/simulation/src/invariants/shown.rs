//! Checks the state that the server exposes against the messages that it has received.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use discovery::entries::{Record, Status, WorkloadView};
use discovery::objects::Key;
use workload_health::State;

use super::{EntryState, Invariants};
use crate::process::run_of;
use crate::world::Server;

impl Invariants {
    /// Checks the exposed state after a step.
    pub fn look(&mut self, now: Duration, server: &Server) {
        let views = server.entries.view(now - server.started);
        let mut gone: BTreeSet<Key> = self.seen.keys().cloned().collect();
        for view in views {
            let key = Key::new(view.namespace.clone(), view.name.clone());
            gone.remove(&key);
            self.look_at(now, key, Some(&view));
        }
        for key in gone {
            self.look_at(now, key, None);
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

    fn look_at(&mut self, now: Duration, key: Key, view: Option<&WorkloadView>) {
        let mut seen = self.seen.get(&key).cloned().unwrap_or_default();
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
                self.may_go(now, &key, &seen, reason, state)
            };
            if !is_right {
                self.violation(|| format!("{key}: served is {is_served}, {why}, of {state:?}; {seen:?}"));
            }
        }
        if is_served {
            self.known.insert(key.clone());
            self.moving.insert(key.clone());
        }
        seen.is_served = is_served;
        self.seen.insert(key, seen);
    }

    /// Returns whether an endpoint may be removed for this reason; `None`: the entry was deleted.
    fn may_go(
        &self,
        now: Duration,
        key: &Key,
        seen: &EntryState,
        reason: Option<&str>,
        state: Option<State>,
    ) -> bool {
        // One grace period applies to agents that have not reconnected since the start, another to
        // those that have.
        let passed = |since: Option<Duration>| {
            let grace = |since| if since == self.server_started { self.restart_grace } else { self.grace };
            since.is_some_and(|since| now >= since + grace(since))
        };
        match reason {
            None | Some("Disconnected") => !self.is_there.contains(key) || passed(seen.no_stream_since),
            Some("AgentSilent") => {
                passed(seen.no_reporter_since) || now >= seen.last_report_at + self.silence
            }
            Some("ProbeFailed" | "Draining" | "Terminating") => {
                state.is_none_or(|state| state == State::Unhealthy)
            }
            _ => true,
        }
    }
}
