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
