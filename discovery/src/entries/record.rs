//! What is stored of an entry.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::objects::Spec;

/// An auto-registered entry whole, or what is known of a manual one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// `None`: a manual entry, whose spec is the operator's.
    pub auto: Option<Auto>,
    /// `istio.io/workloadController` whole, as `app-health/d-0`. Any other word before the `/` is a foreign controller's: never written.
    pub controller: Option<String>,
    /// `app-health.io/session`: grows with each reporter stream.
    pub session: u64,
    /// `istio.io/connectedAt`.
    pub connected_at: Option<Timestamp>,
    /// `istio.io/disconnectedAt`; absent while a stream lives.
    pub disconnected_at: Option<Timestamp>,
    /// `status.conditions`, the one of type `Healthy`. The others are the store's affair.
    pub condition: Option<Condition>,
    /// What was known when the condition became Unknown, for the policies `keep`: `app-health.io/before-unknown`.
    pub before: Option<Before>,
    /// Kubernetes' resourceVersion; the brain hands back what it was given.
    #[serde(skip)]
    pub resource_version: Option<String>,
}

/// What an auto-registered entry has and a manual one does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auto {
    /// `istio.io/autoRegistrationGroup`.
    pub group: String,
    /// The entry's spec.
    #[serde(with = "shared")]
    pub spec: Arc<Spec>,
    /// The group's `spec.metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `proxy.istio.io/health-checks-enabled`.
    pub health_checks: bool,
}

/// The condition `Healthy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its status.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// Printable, at most 256 bytes.
    #[serde(default)]
    pub message: String,
    /// When the agent last probed: arrival minus the age in the report.
    #[serde(default)]
    pub last_probe_time: Option<Timestamp>,
    /// When `status` last changed.
    pub last_transition_time: Timestamp,
}

/// A condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Healthy.
    True,
    /// Unhealthy.
    False,
    /// Nobody knows.
    Unknown,
}

/// A condition's reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// True.
    ProbeSucceeded,
    /// False: its probe failed.
    ProbeFailed,
    /// False: it is being drained.
    Draining,
    /// False: it ends.
    Terminating,
    /// Unknown: registered, with a probe.
    AwaitingFirstReport,
    /// Unknown: the agent has no verdict for too long.
    AwaitingVerdict,
    /// Unknown: the agent has no probe (manual entries).
    NoProbe,
    /// Unknown: the stream is open and nothing comes.
    AgentSilent,
    /// Unknown: the agent lives and does not probe.
    ProberStalled,
    /// Unknown: the stream is gone.
    Disconnected,
    /// Another controller's word.
    Foreign,
}

/// What an entry was before its condition became Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Before {
    /// An endpoint.
    Served,
    /// None: unhealthy.
    Unserved,
    /// None: it had said goodbye.
    Left,
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// A spec is shared with snapshots, and stored as itself.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::objects::Spec;

    pub(super) fn serialize<S: Serializer>(spec: &Arc<Spec>, serializer: S) -> Result<S::Ok, S::Error> {
        Spec::serialize(spec, serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Spec>, D::Error> {
        Spec::deserialize(deserializer).map(Arc::new)
    }
}
