//! What a snapshot needs of an entry.

use std::sync::Arc;

use super::Timestamp;
use crate::objects::{Key, Spec};

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
    /// Not served, and nothing says that it was an endpoint in the life of this process: nobody has said anything of it yet, or it was
    /// sick already. It explains no smaller set to a client of a server that lost its store.
    pub awaited: bool,
}
