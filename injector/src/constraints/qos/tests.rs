use serde_json::json;

use super::*;

const FULL: &str = r#"{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}"#;

fn full() -> Value {
    serde_json::from_str(FULL).expect("JSON")
}

#[test]
fn classes_follow_from_requests_and_limits() {
    use QosClass::{BestEffort, Burstable, Guaranteed};
    for (resources, expected) in [
        (json!([{}]), BestEffort),
        (json!([{"requests": {"cpu": "0"}}]), BestEffort),
        (json!([{"requests": {"ephemeral-storage": "1Gi"}}]), BestEffort),
        (json!([full()]), Guaranteed),
        (json!([{"limits": {"cpu": "1", "memory": "1Gi"}}]), Guaranteed),
        (json!([full(), {}]), Burstable),
        (json!([{"requests": {"cpu": "1000m"}, "limits": {"cpu": 1, "memory": "1Gi"}}]), Guaranteed),
        (json!([{"requests": {"cpu": "0"}, "limits": {"cpu": 1, "memory": "1Gi"}}]), Burstable),
        (json!([{"limits": {"cpu": "1"}}]), Burstable),
        (json!([{"requests": {"cpu": "10m", "memory": "96Mi"}}]), Burstable),
    ] {
        let containers: Vec<Value> = resources
            .as_array()
            .expect("a list")
            .iter()
            .map(|resources| json!({"name": "app", "resources": resources}))
            .collect();
        assert_eq!(class(&json!({"containers": containers}), ""), Some(expected), "{resources}");
    }
    let pod = |of_pod: Value, container: Value| json!({"resources": of_pod, "containers": [{"name": "app", "resources": container}]});
    assert_eq!(class(&pod(json!({}), full()), ""), Some(BestEffort));
    assert_eq!(class(&pod(full(), json!({})), ""), Some(Guaranteed));
    assert_eq!(class(&pod(json!({"limits": {"cpu": 1, "memory": "1Gi"}}), json!({})), ""), Some(Guaranteed));
    let requests = json!({"requests": {"cpu": "10m"}});
    assert_eq!(class(&pod(json!({"limits": {"cpu": 1, "memory": "1Gi"}}), requests), ""), Some(Burstable));
    assert_eq!(class(&pod(json!({"limits": {"cpu": "one"}}), json!({})), ""), None);
}

/// Returns the resources of a sidecar that was added to a Guaranteed Pod. `declared` is what the Pod
/// declares for it.
fn guaranteed(template: Value, declared: Option<Value>) -> Value {
    let mut original = json!({"containers": [{"name": "app", "resources": full()}]});
    if let Some(declared) = declared {
        let sidecar = json!({"name": "proxy", "image": "auto", "resources": declared});
        original["containers"].as_array_mut().expect("a list").push(sidecar);
    }
    let mut changed = json!({"containers": [{"name": "app", "resources": full()},
        {"name": "proxy", "resources": template}]});
    guarantee(&original, &mut changed, &["proxy"], "proxy");
    changed["containers"][1]["resources"].clone()
}

#[test]
fn an_added_container_gets_equal_requests_and_limits() {
    let least = json!({"cpu": "100m", "memory": "128Mi"});
    let both = |amounts: &Value| json!({"requests": amounts, "limits": amounts});
    assert_eq!(guaranteed(json!({"requests": {"cpu": "10m", "memory": "96Mi"}}), None), both(&least));
    assert_eq!(guaranteed(Value::Null, None), both(&least));
    let more = json!({"cpu": "0.5", "memory": "1Gi"});
    assert_eq!(guaranteed(json!({"requests": more}), None), both(&more));
    assert_eq!(guaranteed(json!({"requests": {"cpu": "10m"}, "limits": more}), None), both(&more));
    // The Pod's own values have precedence, even if they are lower.
    let less = json!({"cpu": "20m", "memory": "100Mi"});
    assert_eq!(
        guaranteed(json!({"requests": less, "limits": more}), Some(json!({"requests": less}))),
        both(&less)
    );
    let unequal = json!({"requests": less, "limits": more});
    assert_eq!(guaranteed(unequal.clone(), Some(unequal.clone())), unequal);
}

#[test]
fn a_change_of_the_class_gives_a_warning() {
    let app = json!({"name": "app", "resources": full()});
    let original = json!({"containers": [app]});
    let changed = json!({"containers": [app, {"name": "proxy", "resources": {"requests": {"cpu": "10m"}}}]});
    let warning = change(&original, &changed, "proxy").expect("a warning");
    assert_eq!(warning.text, "spec: the QoS class changes from Guaranteed to Burstable");
    assert_eq!(change(&original, &original, "proxy"), None);
    let best_effort = json!({"containers": [{"name": "app"}]});
    assert_eq!(change(&best_effort, &changed, "proxy"), None);
}
