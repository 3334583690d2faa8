//! Probe history for `GET /debug/vm-health`: the probe and its source, counters, and the last
//! outcomes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use workload_health::{HealthReason, Outcome};

use super::HealthSnapshot;
use super::source::ProbeSource;

/// Number of outcomes that are kept.
const CAPACITY: usize = 20;

/// History for diagnosis only; no decision depends on it.
#[derive(Debug)]
pub(super) struct History {
    source: &'static str,
    file: Option<String>,
    error: Option<String>,
    probe: Option<Arc<Value>>,
    /// Consecutive successes and failures towards the next state transition.
    counters: (u32, u32),
    successes: u64,
    failures: u64,
    last: VecDeque<ProbeRecord>,
}

#[derive(Debug)]
struct ProbeRecord {
    at: Instant,
    took: Duration,
    reason: HealthReason,
    /// Failure text; `None` if the probe succeeded.
    text: Option<String>,
}

impl History {
    pub(super) fn new() -> Self {
        Self {
            source: "none",
            file: None,
            error: None,
            probe: None,
            counters: (0, 0),
            successes: 0,
            failures: 0,
            last: VecDeque::with_capacity(CAPACITY),
        }
    }

    pub(super) fn configured(&mut self, source: &ProbeSource, probe: Option<Arc<Value>>) {
        self.source = source.as_str();
        self.file = source.path();
        self.error = source.error().map(str::to_owned);
        self.probe = probe;
    }

    pub(super) fn set_counters(&mut self, counters: (u32, u32)) {
        self.counters = counters;
    }

    pub(super) fn probe_ended(&mut self, outcome: &Outcome, at: Instant, took: Duration) {
        let (reason, text) = match outcome {
            Outcome::Healthy => {
                self.successes += 1;
                (HealthReason::ProbeSucceeded, None)
            }
            Outcome::Unhealthy(unhealthy) => {
                self.failures += 1;
                (unhealthy.reason(), Some(unhealthy.text().to_owned()))
            }
        };
        if self.last.len() == CAPACITY {
            self.last.pop_back();
        }
        self.last.push_front(ProbeRecord { at, took, reason, text });
    }

    /// Returns the history as JSON, newest outcome first; all times are ages in milliseconds.
    pub(super) fn to_json(&self, now: &HealthSnapshot, at: Instant) -> Value {
        let ago = |instant: Instant| millis(at.saturating_duration_since(instant));
        let record = |record: &ProbeRecord| {
            json!({
                "healthy": record.text.is_none(),
                "reason": record.reason.word(),
                "message": record.text,
                "agoMs": ago(record.at),
                "tookMs": millis(record.took),
            })
        };
        json!({
            "probe": self.probe.as_deref(),
            "source": self.source,
            "file": self.file,
            "configError": self.error,
            "state": now.state.word(),
            "reason": now.reason.word(),
            "message": now.message,
            "generation": now.generation,
            "sinceMs": ago(now.since),
            "lastProbeAgoMs": now.last_probe.map(ago),
            "counters": {
                "consecutiveSuccesses": self.counters.0,
                "consecutiveFailures": self.counters.1,
                "successes": self.successes,
                "failures": self.failures,
            },
            "last": self.last.iter().map(record).collect::<Vec<_>>(),
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
