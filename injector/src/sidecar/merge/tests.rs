use serde_json::json;

use super::*;

#[test]
fn values_of_the_pod_override_the_template() {
    let cases = [
        (
            json!({"a": 1, "b": {"c": 1}}),
            json!({"b": {"c": 2, "d": 3}, "e": null}),
            json!({"a": 1, "b": {"c": 2, "d": 3}, "e": null}),
        ),
        (json!({"a": 1}), json!({"a": null}), json!({"a": 1})),
        (json!({"args": ["x", "y"]}), json!({"args": ["z"]}), json!({"args": ["z"]})),
        (
            json!({"env": [{"name": "A", "valueFrom": {"x": 1}}, {"name": "B", "value": "b"}]}),
            json!({"env": [{"name": "C", "value": "c"}, {"name": "A", "value": "a"}]}),
            json!({"env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}, {"name": "C", "value": "c"}]}),
        ),
        (
            json!({"ports": [{"containerPort": 1}, {"containerPort": 2, "protocol": "UDP"}]}),
            json!({"ports": [{"containerPort": 1, "protocol": "TCP", "name": "x"}, {"containerPort": 2}]}),
            json!({"ports": [{"containerPort": 1, "protocol": "TCP", "name": "x"}, {"containerPort": 2, "protocol": "UDP"}, {"containerPort": 2}]}),
        ),
        (
            json!({"volumeMounts": [{"mountPath": "/a", "name": "x"}]}),
            json!({"volumeMounts": [{"mountPath": "/a", "name": "y"}, {"name": "lost"}]}),
            json!({"volumeMounts": [{"mountPath": "/a", "name": "y"}, {"name": "lost"}]}),
        ),
        (
            json!({"readinessProbe": {"httpGet": {"port": 1}, "periodSeconds": 2}}),
            json!({"readinessProbe": {"exec": {"command": ["x"]}}}),
            json!({"readinessProbe": {"periodSeconds": 2, "exec": {"command": ["x"]}}}),
        ),
    ];
    for (template, pod, expected) in cases {
        assert_eq!(merge(&template, &pod, "").to_string(), expected.to_string());
    }
}
