//! Who is at the other end of a stream, by its own account and by its certificate.

use std::collections::BTreeMap;

/// What the first request of a stream says of its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// As `sidecar~10.0.0.7~vm-7.shop~shop.svc.cluster.local`.
    pub id: String,
    /// `NAMESPACE`.
    pub namespace: Option<String>,
    /// `SERVICE_ACCOUNT`.
    pub service_account: Option<String>,
    /// `INSTANCE_IPS`, cut at the commas.
    pub instance_ips: Vec<String>,
    /// `AUTO_REGISTER_GROUP`.
    pub group: Option<String>,
    /// `WORKLOAD_ENTRY`.
    pub workload_entry: Option<String>,
    /// `NETWORK`.
    pub network: Option<String>,
    /// `LABELS`.
    pub labels: BTreeMap<String, String>,
    /// As `region/zone/subzone`.
    pub locality: Option<String>,
    /// Whether `PROXY_CONFIG` has a `readinessProbe`.
    pub readiness_probe: bool,
    /// Whether `APP_HEALTH.version` is 1 or more: our agent, which gets hello and acknowledgements.
    pub app_health: bool,
    /// Our agent's version, where it says one.
    pub agent_version: Option<String>,
}

/// What a client certificate proves: `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The namespace.
    pub namespace: String,
    /// The service account.
    pub service_account: String,
}
