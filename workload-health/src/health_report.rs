//! The messages about health between agent and discovery server: the names in `node.metadata`, the
//! report, and the first message of the server.
//!
//! This module defines only the JSON; agent and server build the protobuf messages around it. A
//! `google.protobuf.Struct` stores numbers as `f64`, so whole numbers are also read from `7.0`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::fields::{excerpt, whole_number};
use crate::health_state::State;
use crate::text::printable;

// Keys of `node.metadata`; the two that begin with APP_HEALTH are ours, the others are Istio's.
pub const NAMESPACE: &str = "NAMESPACE";
pub const SERVICE_ACCOUNT: &str = "SERVICE_ACCOUNT";
/// A list, or comma-separated text.
pub const INSTANCE_IPS: &str = "INSTANCE_IPS";
/// The name of the WorkloadGroup for auto-registration.
pub const AUTO_REGISTER_GROUP: &str = "AUTO_REGISTER_GROUP";
/// The name of an existing WorkloadEntry.
pub const WORKLOAD_ENTRY: &str = "WORKLOAD_ENTRY";
pub const NETWORK: &str = "NETWORK";
pub const LABELS: &str = "LABELS";
pub const CLUSTER_ID: &str = "CLUSTER_ID";
/// Istio's proxy configuration. If it has a `readinessProbe`, the workload has a probe.
pub const PROXY_CONFIG: &str = "PROXY_CONFIG";
/// The key of the probe in [`PROXY_CONFIG`].
pub const READINESS_PROBE: &str = "readinessProbe";
/// The protocol version of the agent, `{"version":1}`.
pub const APP_HEALTH: &str = "APP_HEALTH";
/// The [`HealthReport`], sent only to an app-health discovery server.
pub const APP_HEALTH_REPORT: &str = "APP_HEALTH_REPORT";
/// The current version in [`APP_HEALTH`].
pub const PROTOCOL_VERSION: u64 = 1;

/// The maximum length of an epoch, in bytes.
const EPOCH_BYTES: usize = 64;

/// One health report. It always contains the whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// Identifies the agent process: 1 to 64 printable ASCII characters. Agents of this project
    /// send 32 hexadecimal digits.
    pub epoch: String,
    /// The number of state changes in this epoch.
    pub generation: u64,
    /// The state of the workload at the time of the report.
    pub state: State,
    /// The word of a `HealthReason`; a newer agent may send an unknown word.
    pub reason: String,
    /// A description for people.
    pub message: String,
    /// The time since the last state change, in milliseconds.
    pub since_ms: u64,
    /// The time since the last probe, in milliseconds, if there was one.
    pub last_probe_ago_ms: Option<u64>,
    /// The sum of the probe's period and timeout, in milliseconds: the longest time between the
    /// starts of two probes on a running machine.
    pub interval_ms: Option<u64>,
    /// The longest time until the first threshold is reached, in milliseconds; set while the state
    /// is `Unknown`.
    pub verdict_within_ms: Option<u64>,
}

impl HealthReport {
    /// Returns the value of [`APP_HEALTH_REPORT`].
    pub fn to_json(&self) -> Value {
        let mut report = json!({
            "epoch": self.epoch,
            "generation": self.generation,
            "state": self.state.word(),
            "reason": printable(&self.reason),
            "message": printable(&self.message),
            "sinceMs": self.since_ms,
        });
        let optional = [
            ("lastProbeAgoMs", self.last_probe_ago_ms),
            ("intervalMs", self.interval_ms),
            ("verdictWithinMs", self.verdict_within_ms),
        ];
        for (name, number) in optional {
            if let (Some(number), Some(fields)) = (number, report.as_object_mut()) {
                fields.insert(name.to_owned(), number.into());
            }
        }
        report
    }

    /// Parses a report. The error names the field and the reason: `APP_HEALTH_REPORT.state: must be
    /// …`.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let fields = object(value, APP_HEALTH_REPORT)?;
        let wrong = |name: &str, text: &str| format!("{APP_HEALTH_REPORT}.{name}: {text}");
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let epoch = text("epoch").unwrap_or_default();
        let is_printable = epoch.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
        if epoch.is_empty() || epoch.len() > EPOCH_BYTES || !is_printable {
            return Err(wrong("epoch", "must be 1 to 64 printable characters"));
        }
        let state = text("state").unwrap_or_default();
        Ok(Self {
            epoch: epoch.to_owned(),
            generation: number(fields, "generation")
                .ok_or_else(|| wrong("generation", "expected a whole number"))?,
            state: state.parse().map_err(|error| wrong("state", &format!("{error}")))?,
            reason: printable(text("reason").unwrap_or_default()),
            message: printable(text("message").unwrap_or_default()),
            since_ms: number(fields, "sinceMs").unwrap_or(0),
            last_probe_ago_ms: number(fields, "lastProbeAgoMs"),
            interval_ms: number(fields, "intervalMs"),
            verdict_within_ms: number(fields, "verdictWithinMs"),
        })
    }

    /// Returns the text that acknowledges this report: `<epoch>/<generation>`.
    pub fn acknowledgement(&self) -> String {
        format!("{}/{}", self.epoch, self.generation)
    }
}

/// A health report in one of the two formats that agents send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A HealthInformation message with nothing but Istio's fields.
    Istio {
        /// True if the message has no `error_detail`.
        healthy: bool,
        /// Why the workload is unhealthy, the message of `error_detail`; empty if it is healthy.
        message: String,
    },
    /// One that also has the app-health extension.
    AppHealth(HealthReport),
}

/// The first message of the discovery server on a stream; it is sent again when the probe changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// The number of the agent's stream; 0 while the WorkloadEntry is pending.
    pub session: u64,
    /// The interval at which the agent has to repeat its report, in whole seconds.
    pub heartbeat: Duration,
    /// The `spec.probe` of the WorkloadGroup; `None` if it has none.
    pub probe: Option<Value>,
}

impl Hello {
    /// Returns JSON of the form `{"session":17,"heartbeatSeconds":60,"probe":{…}}`.
    pub fn to_json(&self) -> Value {
        let mut hello = json!({ "session": self.session, "heartbeatSeconds": self.heartbeat.as_secs() });
        if let (Some(probe), Some(fields)) = (&self.probe, hello.as_object_mut()) {
            fields.insert("probe".to_owned(), probe.clone());
        }
        hello
    }

    /// Parses the message. The probe is not validated here: an invalid probe must be reported as
    /// such, and must not reject the message.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let fields = object(value, "hello")?;
        let session = number(fields, "session").ok_or("hello.session: expected a whole number")?;
        let heartbeat = number(fields, "heartbeatSeconds").filter(|seconds| *seconds > 0);
        let heartbeat = heartbeat.ok_or("hello.heartbeatSeconds: expected a whole number, 1 or more")?;
        let probe = fields.get("probe").filter(|probe| !probe.is_null()).cloned();
        Ok(Self { session, heartbeat: Duration::from_secs(heartbeat), probe })
    }
}

fn object<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{name}: expected an object, got {}", excerpt(value)))
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    let number = fields.get(name)?.as_number()?;
    number.as_u64().or_else(|| u64::try_from(whole_number(number)?).ok())
}

#[cfg(test)]
mod tests;
