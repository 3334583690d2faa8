//! Probe history for `GET /debug/vm-health`: the source of the probe, counters, and the last
//! outcomes.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use serving::page::Results;
use workload_health::{HealthReason, Outcome};

use super::HealthSnapshot;
use super::source::ProbeSource;

/// Number of outcomes that are kept.
const CAPACITY: usize = 20;

/// History for diagnosis only; no decision depends on it.
#[derive(Debug, Default)]
pub(super) struct History {
    source: &'static str,
    file: Option<String>,
    error: Option<String>,
    /// Consecutive successes and failures towards the next state transition.
    counters: (u32, u32),
    successes: u64,
    failures: u64,
    last: VecDeque<ProbeRecord>,
}

#[derive(Debug)]
struct ProbeRecord {
    /// Time since the start of the agent.
    at: Duration,
    took: Duration,
    reason: HealthReason,
    /// Failure text; `None` if the probe succeeded.
    text: Option<String>,
}

impl History {
    pub(super) fn set_source(&mut self, source: &ProbeSource) {
        self.source = source.as_str();
        self.file = source.path();
        self.error = source.error().map(str::to_owned);
    }

    pub(super) fn set_counters(&mut self, counters: (u32, u32)) {
        self.counters = counters;
    }

    /// Returns the number of successes and of failures.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.successes, self.failures)
    }

    /// Returns why the last file or pushed probe was rejected.
    pub(super) fn config_error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the last results as runs of equal ones, oldest first.
    pub(super) fn results(&self) -> Results {
        let mut runs = Results::new();
        for ProbeRecord { reason, text, .. } in self.last.iter().rev() {
            match runs.last_mut() {
                Some((last, count, _)) if last == reason.word() => *count += 1,
                _ => runs.push((reason.word().to_owned(), 1, text.is_none())),
            }
        }
        runs
    }

    pub(super) fn probe_ended(&mut self, outcome: &Outcome, at: Duration, took: Duration) {
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
        self.last.push_front(ProbeRecord { at, took, reason, text });
        self.last.truncate(CAPACITY);
    }
}

impl HealthSnapshot {
    /// Returns the response body of `GET /debug/vm-health`, newest outcome first. All times are ages
    /// in milliseconds; `now` is the time since the start of the agent.
    pub(super) fn to_json(&self, now: Duration, stream: &Value) -> Value {
        let age = |at: Duration| millis(now.saturating_sub(at));
        let Self { status, probe, history } = self;
        let record = |record: &ProbeRecord| {
            json!({
                "healthy": record.text.is_none(),
                "reason": record.reason.word(),
                "message": record.text,
                "agoMs": age(record.at),
                "tookMs": millis(record.took),
            })
        };
        json!({
            "probe": probe,
            "source": history.source,
            "file": history.file,
            "configError": history.error,
            "state": status.verdict.state.word(),
            "reason": status.verdict.reason.word(),
            "message": status.verdict.message,
            "generation": status.verdict.generation,
            "sinceMs": age(status.since),
            "lastProbeAgoMs": status.last_probe.map(age),
            "counters": {
                "consecutiveSuccesses": history.counters.0,
                "consecutiveFailures": history.counters.1,
                "successes": history.successes,
                "failures": history.failures,
            },
            "last": history.last.iter().map(record).collect::<Vec<_>>(),
            "stream": stream,
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
