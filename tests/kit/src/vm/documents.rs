//! The configuration of the test fixtures: one group and one service, in Istio's format.

use serde_json::{Value, json};

use super::application::READY_PATH;

/// The namespace of all objects.
pub const NAMESPACE: &str = "shop";
/// The name of the WorkloadGroup and of the ServiceEntry.
pub const GROUP: &str = "payments";
/// The host of the service.
pub const HOST: &str = "payments.shop.example.com";
/// The port of every application, and of the service.
pub const PORT: u16 = 8080;
/// The name of the cluster that discovery generates for the service.
pub const CLUSTER: &str = "outbound|8080||payments.shop.example.com";

/// Returns a probe that reaches its verdict at once: a single failure suffices, and the period is
/// one second, the shortest that the schema allows. The timeout is long, because a busy machine must
/// not make a healthy application fail.
pub fn probe() -> Value {
    json!({
        "periodSeconds": 1,
        "timeoutSeconds": 30,
        "failureThreshold": 1,
        "httpGet": {"path": READY_PATH, "port": PORT},
    })
}

/// Returns the WorkloadGroup with this probe; `Null` for none.
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

/// Returns the ServiceEntry, which selects every entry of the group.
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

/// Returns a WorkloadEntry as an operator writes it, with health checks enabled.
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
