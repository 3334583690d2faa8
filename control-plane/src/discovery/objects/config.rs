//! Everything that is configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Key, Service, Spec};

/// All configured objects; immutable, a new value replaces the old.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// WorkloadGroups.
    pub groups: BTreeMap<Key, Arc<Group>>,
    /// WorkloadEntries that a person wrote.
    pub entries: BTreeMap<Key, Arc<ManualEntry>>,
    /// ServiceEntries.
    pub services: BTreeMap<Key, Arc<Service>>,
}

/// A WorkloadGroup.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The object's.
    pub key: Key,
    /// Hash of the checked probe, as `a1b2c3d4`; equal probes have equal versions. Empty without a probe.
    pub probe_version: String,
}

/// A WorkloadEntry that a person wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualEntry {
    /// Its spec.
    pub spec: Arc<Spec>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// `proxy.istio.io/health-checks-enabled`, read as Go reads a boolean; absent where it is missing or none.
    pub health_checks: Option<bool>,
}
