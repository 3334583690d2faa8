//! The complete set of configuration objects, and the types of WorkloadGroups and manual entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use workload_health::WorkloadGroup;

use super::{ExportTo, Key, Service, Spec};

/// All configuration objects. The value is immutable and replaced as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub groups: BTreeMap<Key, Arc<Group>>,
    /// WorkloadEntries written by the operator.
    pub entries: BTreeMap<Key, Arc<ManualEntry>>,
    pub services: BTreeMap<Key, Arc<Service>>,
    /// True if some object could never be read, so that a group or entry that seems absent may
    /// exist. Then nothing is deleted because of its absence.
    pub incomplete: bool,
}

impl Config {
    /// Keeps the services of other namespaces than `allowed` in their namespace, whatever their `exportTo`
    /// says. Returns a warning for each of them.
    pub fn restrict_exports(&mut self, allowed: &BTreeSet<String>) -> Vec<String> {
        let mut warnings = Vec::new();
        for (key, service) in &mut self.services {
            if service.export_to == ExportTo::All && !allowed.contains(&key.namespace) {
                Arc::make_mut(service).export_to = ExportTo::OwnNamespace;
                warnings.push(format!(
                    "ServiceEntry {key}: not exported: namespace {:?} is not in --export-namespaces",
                    key.namespace
                ));
            }
        }
        warnings
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub key: Key,
    pub group: WorkloadGroup,
    /// Hash of the validated probe, such as `a1b2c3d4`, so that equal probes have equal versions.
    /// Empty without a probe.
    pub probe_version: String,
}

impl Group {
    /// Creates a group and computes the version of its probe.
    pub fn new(key: Key, group: WorkloadGroup) -> Self {
        let probe_version = group.probe.as_ref().map_or_else(String::new, |probe| {
            let digest = Sha256::digest(probe.to_json().to_string());
            digest[..4].iter().map(|byte| format!("{byte:02x}")).collect()
        });
        Self { key, group, probe_version }
    }
}

/// A WorkloadEntry written by the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualEntry {
    pub spec: Arc<Spec>,
    pub annotations: BTreeMap<String, String>,
    /// The annotation `proxy.istio.io/health-checks-enabled`, parsed like Go's strconv.ParseBool;
    /// `None` if it is absent or not a boolean.
    pub health_checks: Option<bool>,
}
