//! What agent and discovery server say to each other of a workload's health: names, the report, the hello.
//!
//! Only JSON: the protobuf messages around it stop at the rim of either side. A `google.protobuf.Struct` keeps numbers as `f64`, so
//! whole numbers are read from `7.0` too.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::fields::{shown, whole_number};
use crate::health_state::State;

/// The type of a report (istio `pkg/model/xds.go`).
pub const HEALTH_INFORMATION: &str = "type.googleapis.com/istio.v1.HealthInformation";
/// The type of the hello, which only our server sends.
pub const PROBE_TYPE: &str = "type.googleapis.com/app_health.v1.Probe";
/// `node.metadata`: the namespace of the workload.
pub const NAMESPACE: &str = "NAMESPACE";
/// `node.metadata`: its service account.
pub const SERVICE_ACCOUNT: &str = "SERVICE_ACCOUNT";
/// `node.metadata`: its addresses, a list or a text with commas.
pub const INSTANCE_IPS: &str = "INSTANCE_IPS";
/// `node.metadata`: the WorkloadGroup that an entry shall be made from.
pub const AUTO_REGISTER_GROUP: &str = "AUTO_REGISTER_GROUP";
/// `node.metadata`: the WorkloadEntry that exists already.
pub const WORKLOAD_ENTRY: &str = "WORKLOAD_ENTRY";
/// `node.metadata`: the network.
pub const NETWORK: &str = "NETWORK";
/// `node.metadata`: labels of the workload.
pub const LABELS: &str = "LABELS";
/// `node.metadata`: the cluster.
pub const CLUSTER_ID: &str = "CLUSTER_ID";
/// `node.metadata`: Istio's proxy configuration; its `readinessProbe` says that there is a probe.
pub const PROXY_CONFIG: &str = "PROXY_CONFIG";
/// In [`PROXY_CONFIG`].
pub const READINESS_PROBE: &str = "readinessProbe";
/// `node.metadata`: what of our protocol the agent speaks, `{"version":1}`.
pub const APP_HEALTH: &str = "APP_HEALTH";
/// `node.metadata`: the [`HealthReport`], towards our server only.
pub const APP_HEALTH_REPORT: &str = "APP_HEALTH_REPORT";
/// Of [`APP_HEALTH`].
pub const PROTOCOL_VERSION: u64 = 1;

/// The longest text of a peer that is kept, in bytes.
pub const TEXT_BYTES: usize = 256;
/// The longest epoch, in bytes.
const EPOCH_BYTES: usize = 64;

/// One report: the whole state, never a change of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// The agent's process: 1 to 64 printable bytes, of ours 32 hexadecimal digits.
    pub epoch: String,
    /// Flips in this epoch.
    pub generation: u64,
    /// The state.
    pub state: State,
    /// A word of `HealthReason`, or one of a newer agent.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Age of the state, in milliseconds.
    pub since_ms: u64,
    /// Age of the last probe, if there was one.
    pub last_probe_ago_ms: Option<u64>,
    /// The probe's period and timeout together, in milliseconds: no two probes begin further apart on a machine that runs.
    pub interval_ms: Option<u64>,
    /// Before the first verdict: when it is there at the latest, in milliseconds from now.
    pub verdict_within_ms: Option<u64>,
}

impl HealthReport {
    /// The value of [`APP_HEALTH_REPORT`].
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

    /// Reads one. `Err`: the field and why, `APP_HEALTH_REPORT.state: must be …`.
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

    /// What an acknowledgement of this report carries: `<epoch>/<generation>`.
    pub fn acknowledgement(&self) -> String {
        format!("{}/{}", self.epoch, self.generation)
    }
}

/// The first message of our server, and each later one that changes the probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// Number of the agent's stream; 0: the entry is still pending.
    pub session: u64,
    /// How often the state is to be said again, in whole seconds.
    pub heartbeat: Duration,
    /// `spec.probe`; absent: none.
    pub probe: Option<Value>,
}

impl Hello {
    /// `{"session":17,"heartbeatSeconds":60,"probe":{…}}`
    pub fn to_json(&self) -> Value {
        let mut hello = json!({ "session": self.session, "heartbeatSeconds": self.heartbeat.as_secs() });
        if let (Some(probe), Some(fields)) = (&self.probe, hello.as_object_mut()) {
            fields.insert("probe".to_owned(), probe.clone());
        }
        hello
    }

    /// Reads one. The probe is not looked at: a bad one is answered, not the hello that brings it.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let fields = object(value, "hello")?;
        let session = number(fields, "session").ok_or("hello.session: expected a whole number")?;
        let heartbeat = number(fields, "heartbeatSeconds").filter(|seconds| *seconds > 0);
        let heartbeat = heartbeat.ok_or("hello.heartbeatSeconds: expected a whole number, 1 or more")?;
        let probe = fields.get("probe").filter(|probe| !probe.is_null()).cloned();
        Ok(Self { session, heartbeat: Duration::from_secs(heartbeat), probe })
    }
}

/// At most 256 bytes of printable ASCII: every other byte is written as `\x0a`, and what does not fit is left out.
pub fn printable(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let width = if (0x20..=0x7e).contains(&byte) { 1 } else { 4 };
        if out.len().saturating_add(width) > TEXT_BYTES {
            break;
        }
        match width {
            1 => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out
}

fn object<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{name}: expected an object, got {}", shown(value)))
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    let number = fields.get(name)?.as_number()?;
    number.as_u64().or_else(|| u64::try_from(whole_number(number)?).ok())
}

#[cfg(test)]
mod tests;
