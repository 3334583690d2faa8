//! Everything that is configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use workload_health::WorkloadGroup;

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
    /// Something could never be read, so an absent group or entry may exist all the same: nothing is deleted for its absence.
    pub incomplete: bool,
}

/// A WorkloadGroup.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The object's.
    pub key: Key,
    /// What it says.
    pub group: WorkloadGroup,
    /// Hash of the checked probe, as `a1b2c3d4`; equal probes have equal versions. Empty without a probe.
    pub probe_version: String,
}

impl Group {
    /// A group with its probe's version.
    pub fn new(key: Key, group: WorkloadGroup) -> Self {
        let probe_version = group.probe.as_ref().map_or_else(String::new, |probe| {
            let digest = Sha256::digest(probe.to_json().to_string());
            digest[..4].iter().map(|byte| format!("{byte:02x}")).collect()
        });
        Self { key, group, probe_version }
    }
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
