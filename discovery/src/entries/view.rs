//! JSON view of an entry for `/debug/workloads`.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use super::entry::Entry;
use super::session::Agent;
use super::streams::Streams;
use super::{Condition, Preserved, Settings, Status};
use crate::objects::Key;

/// An element of `/debug/workloads`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadView {
    pub namespace: String,
    pub name: String,
    /// The WorkloadGroup of an auto-registered entry.
    pub group: Option<String>,
    pub address: String,
    /// Either `served` or `removed`.
    pub endpoint: &'static str,
    /// Reason for the state of the endpoint, such as `condition False`.
    pub why: String,
    pub condition: Option<ConditionView>,
    /// The reporting agent; absent if no agent has reported since the start.
    pub agent: Option<AgentView>,
    /// Controller that owns the entry, such as `app-health/d-0`.
    pub controller: Option<String>,
    /// True if reports are stored but the annotation that lets them act is missing.
    pub health_ignored: bool,
    /// True if the entry is preserved as the last endpoint of a service by policy.
    pub preserved_as_last: bool,
    /// True if self-preservation keeps the endpoint, because too many machines of a service became
    /// silent.
    pub self_preserved: bool,
}

/// The condition in the format of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConditionView {
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(flatten)]
    pub condition: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Either `app-health` or `istio`.
    pub kind: &'static str,
    pub version: Option<String>,
    /// True while the reporting stream is open.
    pub connected: bool,
    pub peer: SocketAddr,
    pub session: u64,
    /// Epoch of the last report.
    pub epoch: Option<String>,
    /// Generation of the last report.
    pub generation: Option<u64>,
    pub last_report_ago_ms: Option<u64>,
    /// Version of the probe that the agent accepted.
    pub probe_version: Option<String>,
    /// Reason why the agent rejected the last probe.
    pub probe_nack: Option<String>,
}

/// Builds the view of an entry; `None` if only its status is known.
pub(super) fn of(
    key: &Key,
    entry: &Entry,
    settings: &Settings,
    preserved: Option<Preserved>,
    now: Duration,
    streams: &Streams,
) -> Option<WorkloadView> {
    let spec = entry.spec()?;
    let is_served = entry.is_served(settings);
    let preserved = preserved.filter(|preserved| preserved.is_endpoint() && !is_served);
    let condition = entry.record.condition.as_ref();
    Some(WorkloadView {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        group: entry.record.auto.as_ref().map(|auto| auto.group.clone()),
        address: spec.address.clone(),
        endpoint: if is_served || preserved.is_some() { "served" } else { "removed" },
        why: why(entry, is_served, preserved),
        condition: condition.map(|it| ConditionView { kind: "Healthy", condition: it.clone() }),
        agent: entry.session.agent().map(|agent| {
            let is_connected =
                entry.session.reporter() == Some(agent.stream) && streams.get(agent.stream).is_some();
            agent_view(agent, is_connected, now)
        }),
        controller: entry.record.controller.clone(),
        health_ignored: entry.record.auto.is_none() && entry.ignores_health() && condition.is_some(),
        preserved_as_last: preserved == Some(Preserved::LastEndpoint),
        self_preserved: preserved.is_some_and(Preserved::is_self_preserved),
    })
}

fn why(entry: &Entry, is_served: bool, preserved: Option<Preserved>) -> String {
    let status = entry.record.condition.as_ref().map(|condition| condition.status);
    match status {
        _ if preserved == Some(Preserved::LastEndpoint) => "preserved as the last endpoint".to_owned(),
        _ if preserved == Some(Preserved::Unhealthy) => {
            "panic threshold (--max-unhealthy-percent)".to_owned()
        }
        _ if preserved.is_some() => "self-preservation (--max-silent-percent)".to_owned(),
        _ if entry.ignores_health() => "not health-checked".to_owned(),
        Some(Status::Unknown) if is_served => "condition Unknown, served by --unknown-policy".to_owned(),
        Some(status) => format!("condition {status}"),
        None => "no condition".to_owned(),
    }
}

fn agent_view(agent: &Agent, connected: bool, now: Duration) -> AgentView {
    let (epoch, generation) = agent.accepted.get().unzip();
    let ago = agent.last_report.map(|at| now.saturating_sub(at).as_millis());
    AgentView {
        kind: if agent.app_health { "app-health" } else { "istio" },
        version: agent.version.clone(),
        connected,
        peer: agent.peer,
        session: agent.session,
        epoch: epoch.map(str::to_owned),
        generation,
        last_report_ago_ms: ago.map(|ago| u64::try_from(ago).unwrap_or(u64::MAX)),
        probe_version: agent.probe_version.clone(),
        probe_nack: agent.probe_nack.clone(),
    }
}
