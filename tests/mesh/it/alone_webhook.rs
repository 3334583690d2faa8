//! Our webhook beside Istio's injector.

use kubernetes_tests::node::{INJECTED, condition};
use mesh_tests::workloads::{Agent, application, pod};
use mesh_tests::{INJECTED_BY_ISTIO, Mesh};
use serde_json::{Value, json};

/// Kubelet waits a second longer for Pods with our agent, so that the agent can say why a probe timed out.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn alone_the_webhook_understands_pods_with_our_agent() {
    let mesh = Mesh::shared();
    mesh.node.install_webhook();
    let namespace = mesh.node.create_labeled_namespace("webhook", &[INJECTED, INJECTED_BY_ISTIO]);
    let mut container = application(&[]);
    container["readinessProbe"]["timeoutSeconds"] = 3.into();
    container["livenessProbe"] = json!({"tcpSocket": {"port": 8080}});
    let warnings = namespace.create(&pod("ours", Agent::Template, &[container]));
    assert!(!warnings.contains("app-health: "), "{warnings}");
    let ours = namespace.pod_until("ours", "is ready", |pod| condition(pod, "Ready"));
    let names = |list: &str| -> Vec<Value> {
        let containers = ours["spec"][list].as_array().into_iter().flatten();
        containers.map(|container| container["name"].clone()).collect()
    };
    assert_eq!(
        (names("initContainers"), names("containers")),
        (vec!["istio-init".into(), "istio-proxy".into()], vec!["app".into()])
    );
    let app = &ours["spec"]["containers"][0];
    let probe = |kind: &str| {
        let probe = &app[kind];
        (probe["httpGet"]["path"].clone(), probe["timeoutSeconds"].clone())
    };
    assert_eq!(probe("readinessProbe"), ("/app-health/app/readyz".into(), 4.into()));
    assert_eq!(probe("livenessProbe"), ("/app-health/app/livez".into(), 2.into()));
}
