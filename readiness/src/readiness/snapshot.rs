//! The readiness state at one moment and the responses that follow from it.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Condition;

enum_table::table! {
    /// Phase of Envoy and the agent.
    pub enum Phase(name: &'static str) {
        /// This Envoy process has not been ready yet.
        Starting("starting"),
        Ready("ready"),
        /// This Envoy process was ready and is not ready any more.
        NotReady("not-ready"),
        Draining("draining"),
        Terminating("terminating"),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub condition: Condition,
    /// Reason text such as `clusters not received`.
    pub reason: String,
    /// Time since which the condition is pending, from the agent's start.
    pub since: Duration,
}

/// Everything that port 15021 reports. It contains no address, no cluster name and no text of other
/// processes, because that port is open to the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub phase: Phase,
    /// Start of the phase, from the agent's start.
    pub since: Duration,
    /// Number of the current Envoy process, starting at 1.
    pub epoch: u32,
    pub envoy: Option<String>,
    /// Pending conditions, sorted by reason.
    pub pending: Vec<Pending>,
    /// Met conditions with the time at which each was met, sorted by name.
    pub met: Vec<(Condition, Duration)>,
    /// Response body: `ready`, or one reason per line.
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

    /// Returns the next snapshot; what is unchanged keeps its start time.
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

    pub fn is_ready(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the snapshot as one JSON object; `seconds` is the time from the start of the phase
    /// or of the wait to `now`. `stale` is the age of a stored xDS configuration that Envoy uses, and
    /// `store_error` says why the current one could not be stored.
    pub fn verbose(&self, now: Duration, stale: Option<Duration>, store_error: Option<String>) -> Bytes {
        let mut json = self.json(now);
        if let Some(age) = stale {
            json["configuration"] = "cache".into();
            json["staleSeconds"] = age.as_secs().into();
        }
        if let Some(error) = store_error {
            json["storeError"] = error.into();
        }
        format!("{json}\n").into()
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
