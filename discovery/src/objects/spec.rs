//! Address, ports, labels and other fields of a workload, as in `WorkloadEntry.spec`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The fields of `WorkloadEntry.spec`, and of an inline endpoint in a ServiceEntry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// An IP address or `unix://PATH`.
    pub address: String,
    /// Port numbers by port name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Clients in another network do not get the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Locality as `region/zone/subzone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality: Option<String>,
    /// Load balancing weight; 0 means 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: u32,
    /// Service account whose workloads may report on the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(weight: &u32) -> bool {
    *weight == 0
}
