//! The part of an entry that snapshots are built from.

use std::sync::Arc;

use super::Timestamp;
use crate::objects::{Key, Spec};

/// A manual or auto-registered entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub key: Key,
    pub spec: Arc<Spec>,
    /// True if Envoys send requests to the endpoint.
    pub served: bool,
    /// True if the policy `keep` may keep it as the last endpoint: the workload did not shut down
    /// and was not deleted.
    pub keepable: bool,
    /// If not served: the condition's lastTransitionTime.
    pub unserved_since: Option<Timestamp>,
    /// True if the entry was an endpoint or became unhealthy since this process started. Others do
    /// not explain why a server that lost its store has fewer endpoints than a client.
    pub accounted_for: bool,
}
