//! PURE. What is known at one moment, with the answers to give as bytes.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Condition;

/// Where Envoy and the agent are between start and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not ready yet in this life of Envoy.
    Starting,
    /// Ready.
    Ready,
    /// Was ready, is not.
    NotReady,
    /// A drain is going on.
    Draining,
    /// The agent is about to end.
    Terminating,
}

impl Phase {
    /// As it is written in answers and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::NotReady => "not-ready",
            Self::Draining => "draining",
            Self::Terminating => "terminating",
        }
    }
}

/// A condition that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Which.
    pub condition: Condition,
    /// Why: `clusters not received`.
    pub reason: String,
    /// Since when, from the agent's start.
    pub since: Duration,
}

/// Everything that 15021 says. Holds no address, no cluster's name, no words of others: that port is open to the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Where things are.
    pub phase: Phase,
    /// Since when, from the agent's start.
    pub since: Duration,
    /// Number of this life of Envoy, from 1.
    pub epoch: u32,
    /// Envoy's version, once it has said it.
    pub envoy: Option<String>,
    /// Sorted by reason.
    pub pending: Vec<Pending>,
    /// Each with the time at which it was met, sorted by name.
    pub met: Vec<(Condition, Duration)>,
    /// The body of the answer: `ready`, or the reasons, one a line.
    pub body: Bytes,
}

impl Snapshot {
    pub(super) fn first(now: Duration) -> Self {
        Self {
            phase: Phase::Starting,
            since: now,
            epoch: 1,
            envoy: None,
            pending: Vec::new(),
            met: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// The one after this; what goes on keeps its beginning.
    pub(super) fn next(
        &self,
        phase: Phase,
        pending: Vec<(Condition, String)>,
        met: Vec<Condition>,
        epoch: u32,
        envoy: Option<String>,
        now: Duration,
    ) -> Self {
        let goes_on = epoch == self.epoch;
        let pending_since = |condition: Condition| {
            let before = self.pending.iter().find(|before| goes_on && before.condition == condition);
            before.map_or(now, |before| before.since)
        };
        let met_since = |condition: Condition| {
            let before = self.met.iter().find(|before| goes_on && before.0 == condition);
            before.map_or(now, |before| before.1)
        };
        let mut pending: Vec<Pending> = pending
            .into_iter()
            .map(|(condition, reason)| Pending { condition, reason, since: pending_since(condition) })
            .collect();
        pending.sort_by(|one, other| one.reason.as_bytes().cmp(other.reason.as_bytes()));
        let met = met.into_iter().map(|condition| (condition, met_since(condition))).collect();
        let since = if goes_on && phase == self.phase { self.since } else { now };
        let body = body(&pending);
        Self { phase, since, epoch, envoy, pending, met, body }
    }

    /// All conditions are met.
    pub fn is_ready(&self) -> bool {
        self.pending.is_empty()
    }

    /// The same in detail, one JSON object; `seconds` are those since the phase or the wait began, counted at `now`.
    pub fn verbose(&self, now: Duration) -> Bytes {
        format!("{}\n", self.json(now)).into()
    }

    pub(super) fn json(&self, now: Duration) -> Value {
        let seconds = |since: Duration| (now.saturating_sub(since).as_secs_f64() * 100.0).round() / 100.0;
        let pending = self.pending.iter().map(|pending| {
            json!({
                "condition": pending.condition.name(),
                "reason": pending.reason,
                "seconds": seconds(pending.since),
            })
        });
        json!({
            "ready": self.is_ready(),
            "phase": self.phase.name(),
            "seconds": seconds(self.since),
            "epoch": self.epoch,
            "envoy": self.envoy,
            "pending": pending.collect::<Vec<_>>(),
            "met": self.met.iter().map(|(condition, _)| condition.name()).collect::<Vec<_>>(),
        })
    }
}

fn body(pending: &[Pending]) -> Bytes {
    if pending.is_empty() {
        return Bytes::from_static(b"ready\n");
    }
    pending.iter().flat_map(|pending| [pending.reason.as_str(), "\n"]).collect::<String>().into()
}
