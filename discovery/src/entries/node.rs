//! Metadata and certificate identity of the peer of a stream.

use std::collections::BTreeMap;

/// Identifies a stream. Numbers are not reused while the process runs.
pub type StreamId = u64;

/// The node of a stream's first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Node ID, such as `sidecar~10.0.0.7~vm-7.shop~shop.svc.cluster.local`.
    pub id: String,
    pub namespace: Option<String>,
    pub service_account: Option<String>,
    /// `INSTANCE_IPS`, split at the commas.
    pub instance_ips: Vec<String>,
    /// The metadata field `AUTO_REGISTER_GROUP`.
    pub group: Option<String>,
    pub workload_entry: Option<String>,
    pub network: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Locality as `region/zone/subzone`.
    pub locality: Option<String>,
    /// True if `PROXY_CONFIG` has a `readinessProbe`.
    pub readiness_probe: bool,
    /// True if there is a `PROXY_CONFIG`, which Istio's agent always sends.
    pub proxy_config: bool,
    /// True if `APP_HEALTH.version` is 1 or more: the peer is an app-health agent, which receives
    /// hellos and acknowledgements.
    pub app_health: bool,
    /// Version of the app-health agent, if it sends one.
    pub agent_version: Option<String>,
}

impl Node {
    /// Returns true for an agent of Istio without a probe. It never sends a report.
    pub fn never_reports(&self) -> bool {
        self.proxy_config && !self.readiness_probe && !self.app_health
    }
}

/// Identity of a client certificate: `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub namespace: String,
    pub service_account: String,
}
