//! The name of a workload.

use std::fmt;

/// The service account in whose name a workload acts. Its text is the SPIFFE ID, for example
/// `spiffe://cluster.local/ns/shop/sa/web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadIdentity {
    pub trust_domain: String,
    pub namespace: String,
    pub service_account: String,
}

impl fmt::Display for WorkloadIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trust_domain, namespace, service_account } = self;
        write!(out, "spiffe://{trust_domain}/ns/{namespace}/sa/{service_account}")
    }
}
