use serde_json::{Value, json};

use super::*;

fn document(kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": kind,
        "metadata": {"name": "x", "namespace": "shop"}, "spec": spec,
    })
}

/// Returns a valid ServiceEntry whose spec is changed by `change`.
fn service(change: Value) -> Value {
    let mut spec = json!({
        "hosts": ["pay.shop"], "resolution": "STATIC",
        "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
        "workloadSelector": {"labels": {"app": "pay"}},
    });
    for (key, value) in change.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    document("ServiceEntry", spec)
}

fn check<T>(parsed: Result<workload_health::Checked<T>, Vec<String>>, errors: &[&str]) {
    let found = parsed.map_or_else(|errors| errors, |_| Vec::new());
    assert_eq!(found, errors);
}

#[test]
fn entries() {
    let spec = json!({
        "address": "10.0.0.7", "ports": {"http": 8080}, "labels": {"app": "pay"}, "network": "dc1", "locality": "eu/a/1", "weight": 2,
        "serviceAccount": "pay",
    });
    let mut whole = document("WorkloadEntry", spec.clone());
    whole["metadata"]["annotations"] = json!({"proxy.istio.io/health-checks-enabled": "T"});
    let (key, entry) = ManualEntry::parse(&whole).expect("a valid document").value;
    assert_eq!(key.to_string(), "shop/x");
    assert_eq!(serde_json::to_value(entry.spec.as_ref()).expect("JSON"), spec);
    assert_eq!(entry.health_checks, Some(true));
    whole["metadata"]["labels"] = json!({"app": "metadata wins", "zone": "a"});
    let (_, entry) = ManualEntry::parse(&whole).expect("a valid document").value;
    assert_eq!(json!(entry.spec.labels), json!({"app": "metadata wins", "zone": "a"}));
    let rows = [
        (json!({"address": "unix:///run/pay.sock"}), &[][..]),
        (json!({"address": format!("unix:///{}", "a".repeat(106))}), &[]),
        (
            json!({"address": format!("unix:///{}", "a".repeat(107))}),
            &["spec.address: a socket path must have at most 107 bytes and no NUL"],
        ),
        (
            json!({"address": "unix:///run/\0"}),
            &["spec.address: a socket path must have at most 107 bytes and no NUL"],
        ),
        (json!({}), &["spec.address: is required"]),
        (json!({"address": "vm"}), &["spec.address: must be an IP address or unix:///PATH, got \"vm\""]),
        (json!({"address": "::1", "ports": {"a": 0}}), &["spec.ports.a: must be between 1 and 65535, got 0"]),
        (
            json!({"address": 7, "weight": -1}),
            &["spec.address: expected a string, got 7", "spec.weight: must be 0 or more, got -1"],
        ),
    ];
    for (spec, errors) in rows {
        check(ManualEntry::parse(&document("WorkloadEntry", spec)), errors);
    }
    check(ManualEntry::parse(&json!(7)), &["kind: expected WorkloadEntry, got none"]);
}

#[test]
fn services() {
    let rows = [
        (json!({}), &[][..]),
        (json!({"exportTo": ["."]}), &[]),
        (json!({"workloadSelector": null, "endpoints": [{"address": "10.0.0.7"}]}), &[]),
        (json!({"resolution": "DNS"}), &["spec.resolution: must be STATIC, got \"DNS\""]),
        (json!({"resolution": null}), &["spec.resolution: must be STATIC, got none"]),
        (json!({"hosts": []}), &["spec.hosts: must have at least one element"]),
        (json!({"hosts": ["a", "a"]}), &["spec.hosts[1]: duplicate value \"a\""]),
        (json!({"hosts": ["*.shop"]}), &["spec.hosts[0]: must be a DNS name, got \"*.shop\""]),
        (json!({"ports": []}), &["spec.ports: must have at least one element"]),
        (
            json!({"ports": [{"number": 0, "name": "a", "protocol": "UDP"}, {"number": 1}]}),
            &[
                "spec.ports[0].number: must be between 1 and 65535, got 0",
                "spec.ports[0].protocol: must be HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TCP, TLS or MONGO, got \"UDP\"",
                "spec.ports[1].name: is required",
            ],
        ),
        (
            json!({"ports": [{"number": 1, "name": "a"}, {"number": 1, "name": "a"}]}),
            &["spec.ports[1].name: duplicate value \"a\"", "spec.ports[1].number: duplicate value 1"],
        ),
        (json!({"workloadSelector": null}), &["spec: one of endpoints and workloadSelector is required"]),
        (
            json!({"endpoints": [{"address": "10.0.0.7"}]}),
            &["spec: only one of endpoints and workloadSelector may be given"],
        ),
        (json!({"workloadSelector": {}}), &["spec.workloadSelector.labels: must have at least one label"]),
        (json!({"exportTo": ["web"]}), &["spec.exportTo[0]: must be \".\" or \"*\", got \"web\""]),
        (
            json!({"workloadSelector": null, "endpoints": [{"address": "x"}]}),
            &["spec.endpoints[0].address: must be an IP address or unix:///PATH, got \"x\""],
        ),
    ];
    for (change, errors) in rows {
        check(Service::parse(&service(change)), errors);
    }
    let mut kept = service(json!({}));
    kept["metadata"]["annotations"] = json!({"app-health.io/last-endpoint": "keep"});
    assert_eq!(
        Service::parse(&kept).expect("a valid document").value.last_endpoint,
        Some(LastEndpoint::Keep)
    );
    kept["metadata"]["annotations"] = json!({"app-health.io/last-endpoint": "yes"});
    check(
        Service::parse(&kept),
        &["metadata.annotations[app-health.io/last-endpoint]: must be remove or keep, got \"yes\""],
    );
}

#[test]
fn equal_probes_have_equal_versions() {
    let version = |probe: Value| {
        let group =
            Group::parse(&document("WorkloadGroup", json!({"probe": probe}))).expect("a valid document");
        group.value.probe_version
    };
    let [plain, with_default, other] = [
        version(json!({"tcpSocket": {"port": 80}})),
        version(json!({"periodSeconds": 10, "tcpSocket": {"port": 80}})),
        version(json!({"periodSeconds": 11, "tcpSocket": {"port": 80}})),
    ];
    assert_eq!((plain.len(), plain == with_default, plain == other), (8, true, false));
    assert_eq!(version(Value::Null), "");
}
