//! A Deployment changes from Istio's agent to ours and back, while it is called.

use kubernetes_tests::node::{Namespace, condition};
use mesh_tests::Mesh;
use mesh_tests::workloads::{Agent, application, calls, command, pod, service, template};
use serde_json::{Value, json};

const URL: &str = "http://web:80/";
const CALLERS: [(&str, Agent); 2] = [("caller-stock", Agent::Stock), ("caller-ours", Agent::Mounted)];

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn a_rollout_loses_no_request() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("rollout");
    namespace.create(&service("web"));
    namespace.create(&deployment());
    roll_out(&namespace);
    for (name, agent) in CALLERS {
        namespace.create(&pod(name, agent, &[application(&["--call", URL])]));
    }
    for (name, _) in CALLERS {
        namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
        mesh.node.until("requests arrive", || calls(&namespace, name, URL).succeeded > 0);
    }
    for agent in [Agent::Mounted, Agent::Stock] {
        for (name, _) in CALLERS {
            calls(&namespace, name, URL);
        }
        let patch = json!({"spec": {"template": {"metadata": agent.metadata()}}});
        namespace.kubectl_ok(&["patch", "deployment", "web", "--patch", &patch.to_string()], "");
        roll_out(&namespace);
        // All Pods of the earlier template have ended too.
        let mut pods = Vec::new();
        mesh.node.until("only new Pods exist", || {
            pods = web(&namespace);
            pods.len() == 2
        });
        assert!(pods.iter().all(|pod| command(pod).is_some() == (agent != Agent::Stock)), "{pods:?}");
        for (name, _) in CALLERS {
            let calls = calls(&namespace, name, URL);
            assert!(calls.succeeded > 20, "{name}: {calls:?}");
            assert_eq!(calls.failed, 0, "{name} to {agent:?}: {calls:?}");
        }
    }
}

/// Two Pods, of which kubelet ends one a moment after it has become known that it ends.
fn deployment() -> Value {
    let mut container = application(&[]);
    container["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 8}}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": template("web", Agent::Stock, &[container]),
        },
    })
}

fn roll_out(namespace: &Namespace<'_>) {
    namespace.kubectl_ok(&["rollout", "status", "deployment/web", "--timeout", "120s"], "");
}

fn web(namespace: &Namespace<'_>) -> Vec<Value> {
    let pods = namespace.kubectl_ok(&["get", "pods", "-l", "app=web", "-o", "json"], "");
    let pods: Value = serde_json::from_str(&pods).expect("JSON");
    pods["items"].as_array().expect("a list").clone()
}
