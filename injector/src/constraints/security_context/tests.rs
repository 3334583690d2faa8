use serde_json::json;

use super::*;

fn text(of_pod: Value, of_container: Value) -> Option<String> {
    let spec = json!({"securityContext": of_pod, "containers": [{"name": "app",
        "securityContext": {"runAsNonRoot": true, "runAsUser": 0}}],
        "initContainers": [{"name": "proxy", "securityContext": of_container}]});
    check(&spec, &["proxy"]).err().map(|warning| warning.text)
}

#[test]
fn an_added_container_must_not_be_told_to_run_as_root_and_not_as_root() {
    let inherited =
        "spec.securityContext.runAsUser = 0: container proxy has runAsNonRoot, so it would not start";
    let own = "proxy.securityContext.runAsUser = 0: container proxy has runAsNonRoot, so it would not start";
    for (of_pod, of_container, expected) in [
        (json!({"runAsUser": 0}), json!({"runAsNonRoot": true}), Some(inherited)),
        (json!({"runAsUser": 0, "runAsNonRoot": true}), Value::Null, Some(inherited)),
        (json!({"runAsNonRoot": true}), json!({"runAsUser": 0}), Some(own)),
        (json!({"runAsUser": 0}), json!({"runAsNonRoot": true, "runAsUser": 1337}), None),
        (json!({"runAsUser": 0}), json!({}), None),
        (json!({"runAsNonRoot": true}), json!({}), None),
        (json!({"runAsUser": 0, "runAsNonRoot": true}), json!({"runAsNonRoot": false}), None),
        (Value::Null, Value::Null, None),
    ] {
        assert_eq!(text(of_pod.clone(), of_container).as_deref(), expected, "{of_pod}");
    }
}
