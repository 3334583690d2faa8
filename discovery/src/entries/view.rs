//! What the operator sees of an entry.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use super::entry::{Agent, Entry};
use super::stream::Stream;
use super::{Condition, Settings, Status, StreamId, Timestamp};
use crate::objects::Key;

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

/// One entry's line; `None`: only its status is known.
pub(super) fn of(
    key: &Key,
    entry: &Entry,
    settings: &Settings,
    kept_as_last: bool,
    now: Duration,
    streams: &HashMap<StreamId, Stream>,
) -> Option<WorkloadView> {
    let spec = entry.spec()?;
    let is_served = entry.is_served(settings);
    let condition = entry.record.condition.as_ref();
    Some(WorkloadView {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        group: entry.record.auto.as_ref().map(|auto| auto.group.clone()),
        address: spec.address.clone(),
        endpoint: if is_served || kept_as_last { "served" } else { "removed" },
        why: why(entry, is_served, kept_as_last),
        condition: condition.map(condition_view),
        agent: entry.agent.as_ref().map(|agent| {
            let is_connected = entry.reporter == Some(agent.stream) && streams.contains_key(&agent.stream);
            agent_view(agent, is_connected, now)
        }),
        controller: entry.record.controller.clone(),
        health_ignored: entry.record.auto.is_none() && entry.is_unchecked() && condition.is_some(),
        kept_as_last,
    })
}

fn why(entry: &Entry, is_served: bool, kept_as_last: bool) -> String {
    let status = entry.record.condition.as_ref().map(|condition| condition.status);
    match status {
        _ if kept_as_last && !is_served => "kept as the last endpoint".to_owned(),
        _ if entry.is_unchecked() => "not health-checked".to_owned(),
        Some(Status::Unknown) if is_served => "condition Unknown, kept by --unknown-policy".to_owned(),
        Some(status) => format!("condition {status}"),
        None => "no condition".to_owned(),
    }
}

fn condition_view(condition: &Condition) -> ConditionView {
    ConditionView {
        kind: "Healthy",
        status: condition.status.to_string(),
        reason: condition.reason.to_string(),
        message: condition.message.clone(),
        last_probe_time: condition.last_probe_time,
        last_transition_time: condition.last_transition_time,
    }
}

fn agent_view(agent: &Agent, connected: bool, now: Duration) -> AgentView {
    let ago = agent.last_report.map(|at| now.saturating_sub(at).as_millis());
    AgentView {
        kind: if agent.app_health { "app-health" } else { "plain" },
        version: agent.version.clone(),
        connected,
        peer: agent.peer,
        session: agent.session,
        epoch: agent.accepted.as_ref().map(|(epoch, ..)| epoch.clone()),
        generation: agent.accepted.as_ref().map(|(_, generation, _)| *generation),
        last_report_ago_ms: ago.map(|ago| u64::try_from(ago).unwrap_or(u64::MAX)),
        probe_version: agent.probe_version.clone(),
        probe_nack: agent.probe_nack.clone(),
    }
}
