//! The configuration that the scenes share: one group, one service, as Istio writes them.

use serde_json::{Value, json};

use super::application::READY_PATH;

/// Where everything lives.
pub const NAMESPACE: &str = "shop";
/// The group, and the name of its ServiceEntry.
pub const GROUP: &str = "payments";
/// The host of the service.
pub const HOST: &str = "payments.shop.example.com";
/// The port of every application, and of the service.
pub const PORT: u16 = 8080;
/// The cluster that discovery makes of the service.
pub const CLUSTER: &str = "outbound|8080||payments.shop.example.com";

/// A probe that comes to its verdict at once: one failure, asked for every second, the shortest period that the schema has.
pub fn probe() -> Value {
    json!({
        "periodSeconds": 1,
        "timeoutSeconds": 1,
        "failureThreshold": 1,
        "httpGet": {"path": READY_PATH, "port": PORT},
    })
}

/// The WorkloadGroup with this probe; `Null` for none.
pub fn group(probe: &Value) -> Value {
    let mut group = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadGroup",
        "metadata": {"name": GROUP, "namespace": NAMESPACE},
        "spec": {
            "metadata": {"labels": {"app": GROUP}},
            "template": {"ports": {"http": PORT}, "serviceAccount": GROUP},
        },
    });
    if !probe.is_null() {
        group["spec"]["probe"] = probe.clone();
    }
    group
}

/// The ServiceEntry that takes every entry of the group.
pub fn service() -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": GROUP, "namespace": NAMESPACE},
        "spec": {
            "hosts": [HOST],
            "location": "MESH_INTERNAL",
            "resolution": "STATIC",
            "ports": [{"number": PORT, "name": "http", "protocol": "HTTP"}],
            "workloadSelector": {"labels": {"app": GROUP}},
        },
    })
}

/// A WorkloadEntry that an operator wrote, whose health counts.
pub fn entry(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "WorkloadEntry",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"proxy.istio.io/health-checks-enabled": "true"},
        },
        "spec": {
            "address": address,
            "labels": {"app": GROUP},
            "ports": {"http": PORT},
            "serviceAccount": GROUP,
        },
    })
}
