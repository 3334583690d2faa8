//! A Kubernetes namespace for one test, and the Pods in it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::Node;

/// The label that enables our injection in a namespace.
pub const INJECTED: &str = "app-health.io/injection=enabled";

/// A namespace; dropping it deletes it together with its Pods.
pub struct Namespace<'a> {
    /// The node on which its Pods run.
    pub node: &'a Node,
    pub name: String,
}

impl Node {
    /// Creates a namespace; with `injected`, its Pods get the sidecar.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn create_namespace(&self, name: &str, injected: bool) -> Namespace<'_> {
        let labels: &[&str] = if injected { &[INJECTED] } else { &[] };
        self.create_labeled_namespace(name, labels)
    }

    /// Creates a namespace with these labels (`name=value`).
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn create_labeled_namespace(&self, name: &str, labels: &[&str]) -> Namespace<'_> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.cluster.create_namespace(&name, labels);
        Namespace { node: self, name }
    }
}

impl Namespace<'_> {
    /// Runs kubectl in this namespace and returns stdout.
    ///
    /// # Panics
    /// If it fails; the message contains stderr.
    pub fn kubectl_ok(&self, arguments: &[&str], stdin: &str) -> String {
        self.node.cluster.kubectl_ok(&[&["--namespace", &self.name], arguments].concat(), stdin).0
    }

    /// Creates objects and returns the warnings of kubectl.
    ///
    /// # Panics
    /// If one is rejected.
    pub fn create(&self, object: &Value) -> String {
        let arguments = ["--namespace", &self.name, "create", "-f", "-"];
        self.node.cluster.kubectl_ok(&arguments, &object.to_string()).1
    }

    /// Returns a Pod as the API server has it now.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn pod(&self, name: &str) -> Value {
        self.node.cluster.get(&["--namespace", &self.name, "pod", name])
    }

    /// Waits until `is_so` is true for the Pod, and returns it.
    ///
    /// # Panics
    /// If that does not happen in time; the message contains its events.
    pub fn pod_until(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut pod = Value::Null;
        let seen = || {
            pod = self.pod(name);
            is_so(&pod)
        };
        let story = || format!("{}\n{}", self.kubectl_ok(&["describe", "pod", name], ""), self.logs(name));
        self.node.until_or(&format!("Pod {name} {what}"), seen, story);
        pod
    }

    /// Returns the texts of a Pod's events, oldest first.
    ///
    /// # Panics
    /// If the API server does not respond.
    pub fn events(&self, name: &str) -> Vec<String> {
        let field = format!("involvedObject.name={name}");
        let list = self.node.cluster.get(&["--namespace", &self.name, "events", "--field-selector", &field]);
        let mut events: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
        events.sort_by_key(|event| event["firstTimestamp"].as_str().unwrap_or_default().to_owned());
        events.iter().filter_map(|event| event["message"].as_str()).map(str::to_owned).collect()
    }

    /// Returns the last lines of kubelet's log that name this namespace.
    pub fn kubelet_log(&self) -> String {
        let text = std::fs::read(self.node.folder.join("log/kubelet.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().filter(|line| line.contains(&self.name)).take(60).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Returns the available logs of all containers of a Pod.
    pub fn logs(&self, name: &str) -> String {
        let arguments = ["--namespace", &self.name, "logs", name, "--all-containers", "--prefix"];
        let output = self.node.cluster.kubectl(&arguments, "");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        self.node.cluster.kubectl(&["delete", "namespace", &self.name, "--wait=false"], "");
    }
}
