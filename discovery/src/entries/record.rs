//! The stored form of an entry.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::objects::Spec;

/// A complete auto-registered entry, or the status of a manual one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// `None` for a manual entry, whose spec belongs to the operator.
    pub auto: Option<Auto>,
    /// The annotation `istio.io/workloadController`, such as `app-health/d-0`. An entry whose value
    /// has another prefix belongs to another controller and is never written.
    pub controller: Option<String>,
    /// The annotation `app-health.io/session`, which is incremented with each reporting stream.
    pub session: u64,
    /// The annotation `istio.io/connectedAt`.
    pub connected_at: Option<Timestamp>,
    /// The annotation `istio.io/disconnectedAt`; absent while a stream is open.
    pub disconnected_at: Option<Timestamp>,
    /// The condition of type `Healthy` in `status.conditions`. Other conditions are left to the
    /// store.
    pub condition: Option<Condition>,
    /// The annotation `app-health.io/before-unknown`: the state before the condition became Unknown,
    /// or False because the agent terminated. The `keep` policies and self-preservation need it.
    pub before: Option<Before>,
    /// The Kubernetes resourceVersion. The state machine returns it to the store unchanged.
    #[serde(skip)]
    pub resource_version: Option<String>,
}

impl Record {
    /// Returns true if address or service account of an auto-registered entry differ, so that its
    /// streams must register again.
    pub(super) fn is_moved(&self, new: &Self) -> bool {
        let (Some(old), Some(new)) = (&self.auto, &new.auto) else { return false };
        old.spec.address != new.spec.address || old.spec.service_account != new.spec.service_account
    }
}

/// The part of a record that only auto-registered entries have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auto {
    /// The annotation `istio.io/autoRegistrationGroup`.
    pub group: String,
    pub spec: Arc<Spec>,
    /// Annotations from the group's `spec.metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// The annotation `proxy.istio.io/health-checks-enabled`.
    pub health_checks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    pub status: Status,
    pub reason: ConditionReason,
    /// Printable text of at most 256 bytes.
    #[serde(default)]
    pub message: String,
    /// Time of the agent's last probe: the arrival of the report minus the age in it.
    #[serde(default)]
    pub last_probe_time: Option<Timestamp>,
    /// Time of the last change of `status`.
    pub last_transition_time: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    True,
    False,
    Unknown,
}

/// Reason of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConditionReason {
    ProbeSucceeded,
    /// Status False: the probe failed.
    ProbeFailed,
    /// Status False: the agent is draining.
    Draining,
    /// Status False: the agent is terminating.
    Terminating,
    /// Status Unknown: the workload registered with a probe and has not reported yet.
    AwaitingFirstReport,
    /// Status Unknown: the agent had no probe result for too long.
    AwaitingVerdict,
    /// Status Unknown: the agent has no probe (manual entries only).
    NoProbe,
    /// Status Unknown: the stream is open but no reports arrive.
    AgentSilent,
    /// Status Unknown: the agent reports but its probe does not run.
    ProberStalled,
    /// Status Unknown: no stream is open.
    Disconnected,
    /// The condition was set by another controller.
    Foreign,
}

/// State of an entry before its condition became Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Before {
    /// The entry was an endpoint.
    Served,
    /// The entry was unhealthy.
    Unserved,
    /// The agent was draining or terminating.
    Left,
}

impl ConditionReason {
    /// Returns the status of a condition with this reason.
    pub(super) fn status(self) -> Status {
        match self {
            Self::ProbeSucceeded => Status::True,
            Self::ProbeFailed | Self::Draining | Self::Terminating => Status::False,
            _ => Status::Unknown,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

impl fmt::Display for ConditionReason {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}
