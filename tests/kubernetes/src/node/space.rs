//! A namespace of the cluster for one test, and the Pods in it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::Node;

/// The label by which a namespace asks for the sidecar.
const INJECTED: &str = "app-health.io/injection=enabled";

/// A namespace; it goes, and its Pods with it, when it is dropped.
pub struct Space<'a> {
    /// The node on which its Pods run.
    pub node: &'a Node,
    /// Its name.
    pub name: String,
}

impl Node {
    /// A namespace of its own; with `injected`, its Pods get the sidecar.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn space(&self, name: &str, injected: bool) -> Space<'_> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let labels: &[&str] = if injected { &[INJECTED] } else { &[] };
        self.cluster.create_namespace(&name, labels);
        Space { node: self, name }
    }
}

impl Space<'_> {
    /// kubectl in this namespace: stdout.
    ///
    /// # Panics
    /// When it does not work; with its words.
    pub fn done(&self, arguments: &[&str], stdin: &str) -> String {
        self.node.cluster.done(&[&["--namespace", &self.name], arguments].concat(), stdin).0
    }

    /// Creates objects; what kubectl warns of is returned.
    ///
    /// # Panics
    /// When one is refused.
    pub fn create(&self, object: &Value) -> String {
        let arguments = ["--namespace", &self.name, "create", "-f", "-"];
        self.node.cluster.done(&arguments, &object.to_string()).1
    }

    /// A Pod as the API server has it now.
    ///
    /// # Panics
    /// When there is none.
    pub fn pod(&self, name: &str) -> Value {
        self.node.cluster.get(&["--namespace", &self.name, "pod", name])
    }

    /// Waits until the Pod is so, and returns it.
    ///
    /// # Panics
    /// When it never is; with its events.
    pub fn pod_until(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut pod = Value::Null;
        let seen = || {
            pod = self.pod(name);
            is_so(&pod)
        };
        let story = || format!("{}\n{}", self.done(&["describe", "pod", name], ""), self.logs(name));
        self.node.until_or(&format!("Pod {name} {what}"), seen, story);
        pod
    }

    /// What the events of a Pod say, oldest first.
    ///
    /// # Panics
    /// When the API server does not answer.
    pub fn events(&self, name: &str) -> Vec<String> {
        let field = format!("involvedObject.name={name}");
        let list = self.node.cluster.get(&["--namespace", &self.name, "events", "--field-selector", &field]);
        let mut events: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
        events.sort_by_key(|event| event["firstTimestamp"].as_str().unwrap_or_default().to_owned());
        events.iter().filter_map(|event| event["message"].as_str()).map(str::to_owned).collect()
    }

    /// The logs of all containers of a Pod, as far as there are any.
    pub fn logs(&self, name: &str) -> String {
        let arguments = ["--namespace", &self.name, "logs", name, "--all-containers", "--prefix"];
        let output = self.node.cluster.kubectl(&arguments, "");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Space<'_> {
    fn drop(&mut self) {
        self.node.cluster.kubectl(&["delete", "namespace", &self.name, "--wait=false"], "");
    }
}
