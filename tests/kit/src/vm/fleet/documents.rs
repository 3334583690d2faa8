//! The configuration of a fleet: a group and a service for each number.

use serde_json::{Value, json};

/// The namespace of all objects.
pub const NAMESPACE: &str = "fleet";
/// The service accounts, to which services are assigned in turn.
pub const ACCOUNTS: [&str; 4] = ["orders", "carts", "stock", "mail"];
pub(super) const PORT: u16 = 8080;
/// When the services were created: the oldest export of a host takes precedence.
const CREATED: &str = "2020-01-01T00:00:00Z";

/// Returns the name of a service and of its group.
pub(super) fn name(service: u32) -> String {
    format!("service-{service:03}")
}

/// Returns the index of a service's account in [`ACCOUNTS`].
pub(super) fn account(service: u32) -> usize {
    service as usize % ACCOUNTS.len()
}

/// Returns the name of the cluster that discovery generates for a service.
pub fn cluster(service: u32) -> String {
    format!("outbound|{PORT}||{}.fleet.example.com", name(service))
}

/// Returns a WorkloadGroup and a ServiceEntry for each service.
pub fn documents(services: u32) -> Vec<Value> {
    (0..services).flat_map(|service| [group(service), entry(service)]).collect()
}

fn group(service: u32) -> Value {
    let name = name(service);
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "metadata": {"labels": {"app": name}},
            "template": {"ports": {"http": PORT}, "serviceAccount": ACCOUNTS[account(service)]},
            "probe": {"periodSeconds": 10, "httpGet": {"path": "/readyz", "port": PORT}},
        },
    })
}

fn entry(service: u32) -> Value {
    let name = name(service);
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": CREATED},
        "spec": {
            "hosts": [format!("{name}.fleet.example.com")],
            "location": "MESH_INTERNAL",
            "resolution": "STATIC",
            "ports": [{"number": PORT, "name": "http", "protocol": "HTTP"}],
            "workloadSelector": {"labels": {"app": name}},
        },
    })
}
