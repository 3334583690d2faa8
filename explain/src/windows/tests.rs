use serde_json::{Value, json};

use super::field;

#[test]
fn fields_that_place_a_pod_on_windows() {
    let affinity = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
    let term = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let os = "kubernetes.io/os";
    for (spec, expected) in [
        (json!({}), None),
        (json!({"os": {"name": "windows"}}), Some("spec.os.name")),
        (json!({"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}}), None),
        (json!({"nodeSelector": {"kubernetes.io/os": "windows"}}), Some("spec.nodeSelector")),
        (json!({"nodeSelector": {"beta.kubernetes.io/os": "windows"}}), Some("spec.nodeSelector")),
        (json!({"nodeSelector": {"kubernetes.io/os": "linux"}}), None),
        (json!({"nodeSelector": {"team": "windows"}}), None),
        (affinity(json!([term(os, "In", json!(["windows"]))])), Some("spec.affinity.nodeAffinity")),
        (affinity(json!([term(os, "In", json!(["windows", "linux"]))])), None),
        (affinity(json!([term(os, "NotIn", json!(["windows"]))])), None),
        (affinity(json!([term(os, "NotIn", json!(["linux"]))])), Some("spec.affinity.nodeAffinity")),
        (
            json!({"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.20348"}}),
            Some("spec.nodeSelector"),
        ),
        (
            affinity(json!([term("node.kubernetes.io/windows-build", "Exists", json!([]))])),
            Some("spec.affinity.nodeAffinity"),
        ),
        (affinity(json!([term(os, "In", json!(["windows"])), term("zone", "In", json!(["a"]))])), None),
        (
            json!({"containers": [{"securityContext": {"windowsOptions": {"runAsUserName": "ContainerUser"}}}]}),
            Some("securityContext.windowsOptions"),
        ),
    ] {
        assert_eq!(field(&json!({"spec": spec})).as_deref(), expected, "{spec}");
    }
}
