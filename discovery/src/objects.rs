//! Istio's configuration objects, parsed and validated. Reading them from files and Kubernetes, and
//! health reports, are elsewhere.

mod config;
mod document;
mod host_conflicts;
mod service;
mod spec;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use config::{Config, Group, ManualEntry};
pub use document::{HEALTH_CHECKS, LAST_ENDPOINT};
pub use host_conflicts::HostConflicts;
pub use service::{ExportTo, LastEndpoint, Port, Protocol, Service, Source};
pub use spec::Spec;

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    pub namespace: String,
    /// Name such as `payments-10.0.0.7-dc1`.
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests;
