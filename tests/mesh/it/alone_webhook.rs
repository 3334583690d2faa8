//! Our webhook beside Istio's injector and the policy of the chart app-health-istio.

use kubernetes_tests::node::{INJECTED, Namespace, condition};
use mesh_tests::workloads::{Agent, CHOSEN, application, command, pod};
use mesh_tests::{INJECTED_BY_ISTIO, Mesh};
use serde_json::{Value, json};

/// Kubelet waits a second longer for Pods with our agent, so that the agent can say why a probe timed out. The Pod, or
/// its namespace, chooses the agent.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn alone_the_webhook_understands_pods_with_our_agent() {
    let mesh = Mesh::shared();
    mesh.node.install_webhook();
    let labels = [INJECTED, INJECTED_BY_ISTIO];
    let by_pod = mesh.node.create_labeled_namespace("webhook", &labels);
    let by_namespace =
        mesh.node.create_labeled_namespace("webhook-chosen", &[&labels[..], &[CHOSEN]].concat());
    let pods = [
        (&by_pod, "template", Agent::Template),
        (&by_pod, "label", Agent::Mounted),
        (&by_namespace, "namespace", Agent::Stock),
    ];
    for (namespace, name, agent) in pods {
        let mut container = application(&[]);
        container["readinessProbe"]["timeoutSeconds"] = 3.into();
        container["livenessProbe"] = json!({"tcpSocket": {"port": 8080}});
        let warnings = namespace.create(&pod(name, agent, &[container]));
        assert!(!warnings.contains("app-health: "), "{name}: {warnings}");
    }
    for (namespace, name, _) in pods {
        check(namespace, name);
    }
}

fn check(namespace: &Namespace<'_>, name: &str) {
    let pod = namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
    let names = |list: &str| -> Vec<Value> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.map(|container| container["name"].clone()).collect()
    };
    assert_eq!(
        (names("initContainers"), names("containers")),
        (vec!["istio-init".into(), "istio-proxy".into()], vec!["app".into()]),
        "{name}"
    );
    assert!(command(&pod).is_some_and(|program| program.ends_with("/app-health-agent")), "{name}: {pod}");
    let app = &pod["spec"]["containers"][0];
    let probe = |kind: &str| {
        let probe = &app[kind];
        (probe["httpGet"]["path"].clone(), probe["timeoutSeconds"].clone())
    };
    assert_eq!(probe("readinessProbe"), ("/app-health/app/readyz".into(), 4.into()), "{name}");
    assert_eq!(probe("livenessProbe"), ("/app-health/app/livez".into(), 2.into()), "{name}");
}
