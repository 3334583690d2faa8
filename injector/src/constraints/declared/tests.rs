use serde_json::json;

use super::*;

/// Returns the resources after `fit`, for a sidecar that the Pod declares with these resources.
fn fitted(declared: &Value, merged: &Value) -> Value {
    let spec = |list: &str, resources: &Value| json!({list: [{"name": "app"}, {"name": "proxy", "resources": resources}]});
    let mut changed = spec("initContainers", merged);
    fit(&spec("containers", declared), &mut changed, "proxy");
    changed["initContainers"][1]["resources"].clone()
}

#[test]
fn what_the_pod_declares_replaces_what_kubernetes_would_reject_beside_it() {
    let of_template = json!({"cpu": "10m", "memory": "96Mi"});
    for (declared, merged, expected) in [
        (
            json!({"limits": {"memory": "64Mi"}}),
            json!({"requests": of_template, "limits": {"memory": "64Mi"}}),
            json!({"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}),
        ),
        (
            json!({"requests": {"memory": "1Gi"}}),
            json!({"requests": {"memory": "1Gi"}, "limits": {"cpu": 1, "memory": "512Mi"}}),
            json!({"requests": {"memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1Gi"}}),
        ),
        // The Pod contradicts itself, or nothing contradicts.
        (
            json!({"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
            json!({"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
            json!({"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
        ),
        (
            json!({"limits": {"memory": "128Mi"}}),
            json!({"requests": of_template, "limits": {"memory": "128Mi"}}),
            json!({"requests": of_template, "limits": {"memory": "128Mi"}}),
        ),
        (json!({"limits": {"cpu": "x"}}), json!({"limits": {"cpu": "x"}}), json!({"limits": {"cpu": "x"}})),
    ] {
        assert_eq!(fitted(&declared, &merged), expected, "{declared}");
    }
}
