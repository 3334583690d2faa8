//! The state of the sidecar: readiness, restarts, exits of Envoy.

mod log;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::container::{Container, Role};
use crate::metrics::samples;
use crate::situation::Situation;

/// The state of the sidecar: its readiness, its restarts, and the exits of Envoy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    /// The container's name.
    pub container: String,
    /// Whether it is ready, by its own account, else by kubelet's.
    pub ready: bool,
    /// True if the sidecar itself reports that it is ready, in its response or else in its log.
    #[serde(skip)]
    pub(crate) reports_ready: bool,
    /// `starting`, `ready`, `not-ready`, `draining` or `terminating`, if it could be asked.
    pub phase: Option<String>,
    pub envoy: Option<String>,
    /// Why it is not ready: condition and reason.
    pub pending: Vec<PendingCondition>,
    /// How often kubelet has restarted the container.
    pub restarts: u64,
    /// How the last run of the container ended, and its termination message.
    pub last_exit: Option<String>,
    /// How often Envoy has exited inside the running container, by cause.
    pub envoy_exits: BTreeMap<String, u64>,
    /// How Envoy exited the last time, by the log of the agent.
    pub last_envoy_exit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PendingCondition {
    pub condition: String,
    pub reason: String,
}

pub(crate) fn read(situation: &Situation, containers: &[Container<'_>]) -> Option<Sidecar> {
    let container = containers.iter().find(|container| container.role == Role::Proxy)?;
    let view = situation.readiness.found();
    let text = |key: &str| view.and_then(|view| view[key].as_str()).map(str::to_owned);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pending = match view {
        Some(view) => crate::container::list(&view["pending"])
            .iter()
            .map(|each| PendingCondition {
                condition: word(&each["condition"]),
                reason: word(&each["reason"]),
            })
            .collect(),
        // Without an answer of the sidecar, its log has the same.
        None if !container.is_ready() => {
            situation.sidecar_log.found().map(|log| log::pending(log)).unwrap_or_default()
        }
        None => Vec::new(),
    };
    let exits = situation.metrics.found().map(|text| {
        let exits = samples(text).filter(|sample| sample.name == "app_health_agent_envoy_exits_total");
        exits
            .filter(|sample| sample.value > 0)
            .map(|sample| (sample.label("cause").to_owned(), sample.value))
            .collect()
    });
    let last_exit = container.terminated().map(|terminated| match terminated.message() {
        "" => terminated.describe(),
        message => format!("{}: {message}", terminated.describe()),
    });
    Some(Sidecar {
        container: container.name.to_owned(),
        ready: view.and_then(|view| view["ready"].as_bool()).unwrap_or(container.is_ready()),
        reports_ready: match view {
            Some(view) => view["ready"] == true,
            None => situation.sidecar_log.found().is_some_and(|log| log::is_ready(log)),
        },
        phase: text("phase"),
        envoy: text("envoy"),
        pending,
        restarts: container.restarts(),
        last_exit,
        envoy_exits: exits.unwrap_or_default(),
        last_envoy_exit: situation.sidecar_log.found().and_then(|log| log::last_envoy_exit(log)),
    })
}
