//! A test of the node itself, on which the other tests rely.

use kubernetes_tests::node::{Node, condition};
use serde_json::json;

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_runs_a_pod_with_the_sidecar() {
    let node = Node::shared();
    let namespace = node.create_namespace("first", true);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "app", "image": "app-health-test/busybox:1", "ports": [{"name": "http", "containerPort": 8080}],
                "command": ["sh", "-c", "mkdir -p /www && echo yes > /www/ready && exec httpd -f -p 8080 -h /www"],
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1},
            }],
        },
    });
    namespace.create(&pod);
    let pod = namespace.pod_until("web", "is ready", |pod| condition(pod, "Ready"));
    assert_eq!(pod["spec"]["initContainers"][0]["name"], "app-health-proxy");
    assert_eq!(pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"], "/app-health/app/readyz");
    namespace.kubectl_ok(&["exec", "web", "-c", "app", "--", "rm", "/www/ready"], "");
    namespace.pod_until("web", "is not ready", |pod| !condition(pod, "Ready"));
    let events = namespace.events("web");
    assert!(events.iter().any(|event| event.contains("statuscode: 404")), "{events:?}");
}
