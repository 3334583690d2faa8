//! Runs kubectl as the administrator or as another user.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{Cluster, manifests, tool};

impl Cluster {
    /// Runs kubectl as the administrator.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> Output {
        self.kubectl_as("admin", arguments, stdin)
    }

    /// Runs kubectl as `user`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn kubectl_as(&self, user: &str, arguments: &[&str], stdin: &str) -> Output {
        let mut child = Command::new(tool("kubectl"))
            .arg("--kubeconfig")
            .arg(self.kubeconfig(user))
            .arg("--cache-dir")
            .arg(self.folder.join("cache"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        // kubectl may exit without reading its input.
        let _ = child.stdin.take().expect("piped").write_all(stdin.as_bytes());
        child.wait_with_output().expect("kubectl ends")
    }

    /// Runs kubectl as the administrator and returns stdout and stderr.
    ///
    /// # Panics
    /// If it fails; the message contains stderr.
    pub fn kubectl_ok(&self, arguments: &[&str], stdin: &str) -> (String, String) {
        let output = self.kubectl(arguments, stdin);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}\n{stdin}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    /// Returns objects as JSON: `kubectl get` with these arguments.
    ///
    /// # Panics
    /// If they do not exist.
    pub fn get(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = ["get", "-o", "json"].iter().chain(arguments).copied().collect();
        serde_json::from_str(&self.kubectl_ok(&arguments, "").0).expect("JSON")
    }

    /// Applies objects, given as YAML or JSON.
    ///
    /// # Panics
    /// If one is rejected.
    pub fn apply(&self, objects: &str) {
        self.kubectl_ok(&["apply", "-f", "-"], objects);
    }

    /// Builds a folder of the shipped manifests.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn kustomize(&self, folder: &str) -> String {
        self.kubectl_ok(&["kustomize", manifests(folder).to_str().expect("UTF-8")], "").0
    }
}
