//! A Deployment changes its agent while it is called.

use kubernetes_tests::node::{Namespace, condition};
use serde_json::{Value, json};

use crate::Mesh;
use crate::workloads::{Agent, Calls, application, calls, command, pod, service, template};

const URL: &str = "http://web:80/";
/// The Pods that call it.
pub const CALLERS: [(&str, Agent); 2] = [("caller-stock", Agent::Stock), ("caller-ours", Agent::Mounted)];

/// A Deployment with Istio's agent, and its callers.
pub struct Rollout<'a> {
    mesh: &'a Mesh,
    namespace: Namespace<'a>,
}

impl<'a> Rollout<'a> {
    /// Creates them, and waits until requests arrive.
    ///
    /// # Panics
    /// If none do.
    pub fn start(mesh: &'a Mesh) -> Self {
        let namespace = mesh.create_namespace("rollout");
        namespace.create(&service("web"));
        namespace.create(&deployment());
        let rollout = Self { mesh, namespace };
        rollout.finish();
        for (name, agent) in CALLERS {
            rollout.namespace.create(&pod(name, agent, &[application(&["--call", URL])]));
        }
        for (name, _) in CALLERS {
            rollout.namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
            mesh.node.until("requests arrive", || calls(&rollout.namespace, name, URL).succeeded > 0);
        }
        rollout
    }

    /// Changes the agent of the Deployment, and returns the calls of each caller until all earlier Pods have ended.
    ///
    /// # Panics
    /// If the rollout does not end, or a caller did not call.
    pub fn change_to(&self, agent: Agent) -> [Calls; 2] {
        for (name, _) in CALLERS {
            calls(&self.namespace, name, URL);
        }
        let patch = json!({"spec": {"template": {"metadata": agent.metadata()}}});
        self.namespace.kubectl_ok(&["patch", "deployment", "web", "--patch", &patch.to_string()], "");
        self.finish();
        let mut pods = Vec::new();
        self.mesh.node.until("only new Pods exist", || {
            pods = self.pods();
            pods.len() == 2
        });
        assert!(pods.iter().all(|pod| command(pod).is_some() == (agent != Agent::Stock)), "{pods:?}");
        CALLERS.map(|(name, _)| {
            let calls = calls(&self.namespace, name, URL);
            assert!(calls.succeeded > 20, "{name}: {calls:?}");
            calls
        })
    }

    fn finish(&self) {
        self.namespace.kubectl_ok(&["rollout", "status", "deployment/web", "--timeout", "120s"], "");
    }

    fn pods(&self) -> Vec<Value> {
        let pods = self.namespace.kubectl_ok(&["get", "pods", "-l", "app=web", "-o", "json"], "");
        let pods: Value = serde_json::from_str(&pods).expect("JSON");
        pods["items"].as_array().expect("a list").clone()
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
