//! The part of an entry that snapshots are built from.

use std::sync::Arc;

use pacing::source::Source;

use super::Timestamp;
use crate::objects::{Key, Spec};

/// Whether the agent of a workload that was an endpoint is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It reports, or its last report explains why the workload is no endpoint.
    Reporting,
    /// Its stream was lost, and the grace period has not ended.
    Missing,
    /// It became silent at this time without a report of ill health, or its agent terminated. A change of
    /// the system clock since the start of the process does not change the time.
    Silent(Timestamp),
}

/// Why a snapshot needs an entry that is not healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preserved {
    /// It is the last endpoint of a service.
    LastEndpoint,
    /// Self-preservation: it is an endpoint because too many machines of its service became silent.
    Silent,
    /// Like `Silent`, but enough of those machines have returned.
    Recovering,
    /// Panic threshold: it is an endpoint because too many machines of its service are unhealthy.
    Unhealthy,
    /// It is no endpoint, but becomes one again if more machines of its service become silent.
    Removed,
}

impl Preserved {
    /// Returns true if Envoys send requests to the endpoint.
    pub fn is_endpoint(self) -> bool {
        self != Self::Removed
    }

    /// Returns true if self-preservation keeps the endpoint, although its agent is silent.
    pub fn is_self_preserved(self) -> bool {
        matches!(self, Self::Silent | Self::Recovering)
    }
}

/// A manual or auto-registered entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub key: Key,
    pub spec: Arc<Spec>,
    /// True if Envoys send requests to the endpoint.
    pub served: bool,
    /// True if the policy `keep` may keep it as the last endpoint: the workload did not shut down
    /// and was not deleted.
    pub preservable: bool,
    /// If not served: the condition's lastTransitionTime.
    pub unserved_since: Option<Timestamp>,
    pub presence: Presence,
    /// True if the entry was an endpoint or became unhealthy since this process started. Others do
    /// not explain why a server that lost its store has fewer endpoints than a client.
    pub accounted_for: bool,
    /// Address or network of an auto-registered entry; `None` if the entry is the operator's own.
    pub source: Option<Source>,
}
