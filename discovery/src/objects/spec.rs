//! What a WorkloadEntry says of a workload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `WorkloadEntry.spec`, and an inline endpoint of a ServiceEntry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// An IP address or `unix://PATH`.
    pub address: String,
    /// By port name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, u16>,
    /// What selectors look at.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Endpoints of another network are not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// As `region/zone/subzone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality: Option<String>,
    /// 0 stands for 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: u32,
    /// Who may report on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(weight: &u32) -> bool {
    *weight == 0
}
