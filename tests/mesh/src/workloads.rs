//! Pods and Deployments of the tests, and what their applications have seen.

use kit::docker::archive::{APPLICATION, PROXY_WITH_OURS};
use kubernetes_tests::node::Namespace;
use serde_json::{Value, json};

/// The label that chooses our agent for a Pod, or for all Pods of a namespace.
const LABEL: &str = "app-health.io/istio-agent";

/// The label with its value, for a namespace.
pub const CHOSEN: &str = "app-health.io/istio-agent=enabled";

/// The annotation that chooses between a native and a classic sidecar.
const NATIVE: &str = "sidecar.istio.io/nativeSidecar";

/// Which agent a Pod has, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Istio's.
    Stock,
    /// Ours, from an image that is mounted as a volume. The policy of the chart app-health-istio changes the Pod.
    Mounted,
    /// The same, by a template of Istio's injector.
    Template,
    /// Ours, copied from its image by an init container.
    Copied,
    /// Ours, in the image of Istio, and chosen by the Pod itself.
    Included,
}

impl Agent {
    /// Returns the labels and annotations of a Pod that choose this agent; null removes one.
    pub fn metadata(self) -> Value {
        let label = (self == Self::Mounted).then_some("enabled");
        let templates = match self {
            Self::Stock | Self::Mounted | Self::Included => None,
            Self::Template => Some("sidecar,app-health"),
            Self::Copied => Some("sidecar,app-health-copy"),
        };
        let image = (self == Self::Included).then_some(PROXY_WITH_OURS);
        json!({
            "labels": {LABEL: label},
            "annotations": {
                "inject.istio.io/templates": templates, "sidecar.istio.io/proxyImage": image,
                // The container that copies would run after a native sidecar.
                NATIVE: (self == Self::Copied).then_some("false"),
            },
        })
    }

    /// Returns what the Pod itself declares of its sidecar.
    fn container(self) -> Option<Value> {
        // The API server completes `auto` to the newest image, which is always pulled.
        (self == Self::Included).then(|| {
            json!({
                "name": "istio-proxy", "image": "auto", "imagePullPolicy": "IfNotPresent",
                "command": ["/opt/app-health/app-health-agent"],
            })
        })
    }
}

/// The application as a container whose readiness is probed each second.
pub fn application(arguments: &[&str]) -> Value {
    json!({
        "name": "app", "image": APPLICATION, "args": arguments, "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1},
    })
}

/// A Pod with this label `app` and these containers.
pub fn pod(name: &str, agent: Agent, containers: &[Value]) -> Value {
    let mut pod = template(name, agent, containers);
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod
}

/// A Pod without a name, as a controller has it.
pub fn template(app: &str, agent: Agent, containers: &[Value]) -> Value {
    let mut metadata = agent.metadata();
    metadata["labels"]["app"] = app.into();
    for map in ["labels", "annotations"] {
        metadata[map].as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    }
    let containers: Vec<Value> = containers.iter().cloned().chain(agent.container()).collect();
    json!({
        "metadata": metadata, "spec": {"terminationGracePeriodSeconds": 30, "containers": containers},
    })
}

/// The same Pod or template with a classic sidecar, which is an ordinary container.
pub fn classic(mut pod: Value) -> Value {
    pod["metadata"]["annotations"][NATIVE] = "false".into();
    pod
}

/// A Service for the Pods with this label `app`.
pub fn service(app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": app},
        "spec": {"selector": {"app": app}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// Returns the agent's command line in the Pod's container `istio-proxy`, of which stock Pods have none.
pub fn command(pod: &Value) -> Option<&str> {
    let lists = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
    let mut all = lists.into_iter().flatten().flatten();
    let proxy = all.find(|container| container["name"] == "istio-proxy").expect("the Pod has a sidecar");
    proxy["command"][0].as_str()
}

/// Sends a request to the control port of the application in a container, from inside.
///
/// # Panics
/// If the application does not respond.
pub fn control(namespace: &Namespace<'_>, pod: &str, container: &str, path: &str) -> String {
    let url = format!("http://127.0.0.1:9900{path}");
    namespace.kubectl_ok(&["exec", pod, "-c", container, "--", "wget", "-q", "-O", "-", &url], "")
}

/// The results of the calls of an application since the last time.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    pub succeeded: u64,
    pub failed: u64,
    /// The first failures, for messages.
    pub failures: Value,
    /// The longest time without a success, in seconds.
    pub longest_gap: f64,
}

impl Calls {
    /// Returns the results of both periods, of which `later` is the second one.
    #[must_use]
    pub fn and(&self, later: &Self) -> Self {
        Self {
            succeeded: self.succeeded + later.succeeded,
            failed: self.failed + later.failed,
            failures: if self.failed == 0 { later.failures.clone() } else { self.failures.clone() },
            longest_gap: self.longest_gap.max(later.longest_gap),
        }
    }
}

/// Returns the results of the calls of a Pod to a URL since the last time.
///
/// # Panics
/// If the application does not call it.
pub fn calls(namespace: &Namespace<'_>, pod: &str, url: &str) -> Calls {
    let calls = control(namespace, pod, "app", &format!("/calls/{url}"));
    let calls: Value = serde_json::from_str(&calls).expect("JSON");
    Calls {
        succeeded: calls["succeeded"].as_u64().expect("a number"),
        failed: calls["failed"].as_u64().expect("a number"),
        failures: calls["failures"].clone(),
        longest_gap: calls["longestGap"].as_f64().expect("a number"),
    }
}
