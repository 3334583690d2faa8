use serde_json::json;

use super::*;

fn affinity(terms: &Value) -> Value {
    json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
    }}})
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

#[test]
fn fields_that_select_windows_nodes_are_recognized() {
    let options = json!({"windowsOptions": {"hostProcess": true}});
    for (spec, field) in [
        (json!({"os": {"name": "windows"}}), "spec.os.name"),
        (json!({"nodeSelector": {"kubernetes.io/os": "windows"}}), "spec.nodeSelector"),
        (json!({"nodeSelector": {"beta.kubernetes.io/os": "windows", "pool": "a"}}), "spec.nodeSelector"),
        (json!({"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.20348"}}), "spec.nodeSelector"),
        (json!({"securityContext": options}), "spec.securityContext.windowsOptions"),
        (
            json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "web"}}}),
            "spec.securityContext.windowsOptions",
        ),
        (
            json!({"containers": [{"name": "a"}, {"name": "b", "securityContext": options}]}),
            "spec.containers[1].securityContext.windowsOptions",
        ),
        (
            json!({"initContainers": [{"name": "a", "securityContext": options}]}),
            "spec.initContainers[0].securityContext.windowsOptions",
        ),
    ] {
        assert_eq!(super::field(&json!({"spec": spec})).as_deref(), Some(field), "{spec}");
    }
    for spec in [
        json!({}),
        json!({"os": {"name": "linux"}}),
        json!({"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "windows"}}),
        json!({"nodeSelector": {"kubernetes.io/os": "linux"}}),
        json!({"nodeSelector": {"example.com/os": "windows"}}),
        json!({"nodeSelector": null}),
        json!({"securityContext": {"windowsOptions": {}}}),
        json!({"securityContext": {"windowsOptions": {"hostProcess": null}}}),
        json!({"tolerations": [{"key": "os", "value": "windows", "effect": "NoSchedule"}]}),
        json!({"runtimeClassName": "windows-2022"}),
    ] {
        assert_eq!(super::field(&json!({"spec": spec})), None, "{spec}");
    }
}

#[test]
fn all_terms_of_a_required_affinity_must_select_windows() {
    let windows = expression("kubernetes.io/os", "In", &["windows"]);
    let not_linux = expression("kubernetes.io/os", "NotIn", &["linux"]);
    let old = expression("beta.kubernetes.io/os", "In", &["windows"]);
    let build = expression("node.kubernetes.io/windows-build", "Exists", &[]);
    let zone = expression("topology.kubernetes.io/zone", "In", &["a"]);
    let linux = expression("kubernetes.io/os", "In", &["linux"]);
    let both = expression("kubernetes.io/os", "In", &["windows", "linux"]);
    let not_windows = expression("kubernetes.io/os", "NotIn", &["windows"]);
    let exists = expression("kubernetes.io/os", "Exists", &[]);
    let term = |expressions: &[&Value]| json!({"matchExpressions": expressions});
    for terms in [
        json!([term(&[&windows])]),
        json!([term(&[&not_linux])]),
        json!([term(&[&zone, &windows])]),
        json!([term(&[&windows]), term(&[&old]), term(&[&build])]),
        json!([term(&[&windows]), term(&[])]),
    ] {
        let pod = json!({"spec": affinity(&terms)});
        assert_eq!(super::field(&pod).as_deref(), Some("spec.affinity.nodeAffinity"), "{terms}");
    }
    for terms in [
        json!([]),
        json!([term(&[])]),
        json!([term(&[&linux])]),
        json!([term(&[&both])]),
        json!([term(&[&not_windows])]),
        json!([term(&[&exists])]),
        json!([term(&[&windows]), term(&[&zone])]),
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}]}]),
    ] {
        assert_eq!(super::field(&json!({"spec": affinity(&terms)})), None, "{terms}");
    }
    let preferred = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": term(&[&windows])},
    ]}}});
    assert_eq!(super::field(&json!({"spec": preferred})), None);
}
