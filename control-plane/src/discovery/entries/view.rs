//! What the operator sees of an entry.

use std::net::SocketAddr;

use serde::Serialize;

use super::Timestamp;

/// A line of `/debug/workloads`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadView {
    /// The entry's.
    pub namespace: String,
    /// The entry's.
    pub name: String,
    /// Of an auto-registered one.
    pub group: Option<String>,
    /// Where it is.
    pub address: String,
    /// `served` or `removed`.
    pub endpoint: &'static str,
    /// As `condition False`.
    pub why: String,
    /// The condition `Healthy`.
    pub condition: Option<ConditionView>,
    /// Who reports; absent where nobody did since the start.
    pub agent: Option<AgentView>,
    /// As `app-health/d-0`.
    pub controller: Option<String>,
    /// Reports are stored, but the annotation that would let them act is missing.
    pub health_ignored: bool,
    /// The last endpoint of a service, kept by policy.
    pub kept_as_last: bool,
}

/// The condition as Kubernetes shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionView {
    /// Always `Healthy`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// As `ProbeFailed`.
    pub reason: String,
    /// Printable.
    pub message: String,
    /// When the agent last probed.
    pub last_probe_time: Option<Timestamp>,
    /// When the status last changed.
    pub last_transition_time: Timestamp,
}

/// Who reports on an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// `app-health` or `plain`.
    pub kind: &'static str,
    /// Where it says one.
    pub version: Option<String>,
    /// Whether the reporter stream lives.
    pub connected: bool,
    /// Whence it came.
    pub peer: SocketAddr,
    /// Of its reporter stream.
    pub session: u64,
    /// Of its last report.
    pub epoch: Option<String>,
    /// Of its last report.
    pub generation: Option<u64>,
    /// How long ago that came.
    pub last_report_ago_ms: Option<u64>,
    /// The probe that it took.
    pub probe_version: Option<String>,
    /// Why it refused the last one.
    pub probe_nack: Option<String>,
}
