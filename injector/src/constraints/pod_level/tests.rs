use serde_json::json;

use super::*;

/// Returns the Pod's own requests after a native sidecar was added to a container, or the warning.
fn fitted(resources: Value, container: Value, sidecar: Value) -> Result<Value, String> {
    let original = json!({"resources": resources, "containers": [{"name": "app", "resources": container}]});
    let mut changed = original.clone();
    changed["initContainers"] = json!([{"name": "proxy", "restartPolicy": "Always", "resources": sidecar}]);
    fit(&original, &mut changed).map_err(|warning| warning.text)?;
    assert_eq!(changed["resources"]["limits"], original["resources"]["limits"]);
    Ok(changed["resources"]["requests"].clone())
}

#[test]
fn the_requests_of_the_pod_grow_within_its_limits() {
    let proxy = json!({"requests": {"cpu": "10m", "memory": "96Mi"}});
    for (resources, container, requests) in [
        // Large enough as they are.
        (
            json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}),
            json!({}),
            json!({"memory": "1Gi"}),
        ),
        (json!({"requests": {"cpu": 1}}), json!({"requests": {"cpu": "500m"}}), json!({"cpu": 1})),
        // Too small, but below the limit, or without one.
        (
            json!({"requests": {"memory": "128Mi", "cpu": "1"}, "limits": {"memory": "1Gi"}}),
            json!({"requests": {"memory": "100Mi"}}),
            json!({"memory": "196Mi", "cpu": "1"}),
        ),
        (
            json!({"requests": {"memory": "100Mi"}}),
            json!({"limits": {"memory": "100Mi"}}),
            json!({"memory": "196Mi"}),
        ),
        // The API server would set these requests to the limits only without the sidecar's requests.
        (json!({"limits": {"memory": "1Gi", "cpu": "2"}}), json!({}), json!({"memory": "1Gi", "cpu": "2"})),
        (json!({"limits": {"memory": "1Gi"}}), json!({"requests": {"memory": "100Mi"}}), Value::Null),
        (json!({}), json!({}), Value::Null),
    ] {
        assert_eq!(fitted(resources.clone(), container, proxy.clone()), Ok(requests), "{resources}");
    }
}

#[test]
fn a_limit_that_is_too_low_is_named() {
    let proxy = json!({"requests": {"cpu": "10m", "memory": "96Mi"}});
    for (resources, container, text) in [
        (
            json!({"limits": {"cpu": "100m", "memory": "64Mi"}}),
            json!({}),
            "spec.resources.limits.memory = 64Mi: the containers and the sidecar request 96Mi",
        ),
        (
            json!({"requests": {"memory": "128Mi"}, "limits": {"memory": "128Mi"}}),
            json!({"requests": {"memory": "100Mi"}}),
            "spec.resources.limits.memory = 128Mi: the containers and the sidecar request 196Mi",
        ),
        (
            json!({"limits": {"cpu": "0.1"}}),
            json!({"limits": {"cpu": "100m"}}),
            "spec.resources.limits.cpu = 100m: the containers and the sidecar request 110m",
        ),
    ] {
        assert_eq!(fitted(resources.clone(), container, proxy.clone()), Err(text.to_owned()), "{resources}");
    }
}

#[test]
fn the_limit_of_a_classic_sidecar_must_not_exceed_that_of_the_pod() {
    let original = json!({"resources": {"limits": {"memory": "256Mi"}}, "containers": [{"name": "app"}]});
    let mut changed = original.clone();
    changed["containers"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "proxy", "resources": {"limits": {"memory": "1Gi"},
        "requests": {"memory": "96Mi"}}}));
    let warning = fit(&original, &mut changed).expect_err("too low");
    assert_eq!(warning.text, "spec.resources.limits.memory = 256Mi: container proxy has a limit of 1Gi");
}

#[test]
fn init_containers_count_with_the_sidecars_before_them() {
    let original = json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
        "initContainers": [{"name": "migrate", "resources": {"requests": {"cpu": "2"}}}],
        "containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]});
    let proxy =
        json!({"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "10m"}}});
    let mut before = original.clone();
    before["initContainers"].as_array_mut().expect("a list").insert(0, proxy.clone());
    assert!(fit(&original, &mut before).is_err());
    let mut after = original.clone();
    after["initContainers"].as_array_mut().expect("a list").push(proxy);
    assert_eq!(fit(&original, &mut after), Ok(()));
}
