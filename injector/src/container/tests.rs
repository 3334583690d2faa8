use serde_json::json;

use super::{Container, Role};
use crate::pod;

#[test]
fn containers_have_a_role_and_may_have_to_end() {
    let spec = json!({
        "initContainers": [
            {"name": "migrate"},
            {"name": "istio-init"},
            {"name": "logs", "restartPolicy": "Always"},
            {"name": "istio-proxy", "restartPolicy": "Always"},
        ],
        "containers": [{"name": "app"}, {"name": "envoy"}],
    });
    let is_proxy = |container: &_| ["istio-init", "istio-proxy", "envoy"].contains(&pod::name(container));
    let found = Container::all(&spec, is_proxy);
    let found: Vec<_> = found
        .iter()
        .map(|container| (container.name, container.role, container.is_ordinary_init()))
        .collect();
    let expected = [
        ("migrate", Role::Init, true),
        ("istio-init", Role::Proxy, true),
        ("logs", Role::NativeSidecar, false),
        ("istio-proxy", Role::Proxy, false),
        ("app", Role::Application, false),
        ("envoy", Role::Proxy, false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn ports_are_found_by_number_and_name() {
    let spec = json!({"containers": [{"name": "app", "ports": [{"name": "http", "containerPort": 8080}]}]});
    let [container] = &Container::all(&spec, |_| false)[..] else { panic!("one container") };
    assert_eq!(container.port_number(&json!(9000)), Some(9000));
    assert_eq!(container.port_number(&json!("http")), Some(8080));
    assert_eq!(container.port_number(&json!("grpc")), None);
}
