//! What a snapshot needs of an entry.

use std::sync::Arc;

use super::Timestamp;
use crate::discovery::objects::{Key, Spec};

/// An entry, manual or auto-registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The entry.
    pub key: Key,
    /// Where it is.
    pub spec: Arc<Spec>,
    /// Whether Envoys are sent there.
    pub served: bool,
    /// Whether the policy `keep` may take it for the last endpoint: it did not leave and was not deleted.
    pub keepable: bool,
    /// While not served: since when, the condition's lastTransitionTime.
    pub unserved_since: Option<Timestamp>,
    /// It is health-checked and nobody has said anything of it yet.
    pub awaited: bool,
}
