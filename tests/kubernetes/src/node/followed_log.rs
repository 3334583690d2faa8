//! The log of a container that is about to end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

use super::Namespace;
use crate::{command, tool};

/// The log of a container, which is read while the container runs, because that of a deleted one is
/// gone.
pub struct FollowedLog {
    kubectl: Child,
    stdout: BufReader<ChildStdout>,
    first: String,
}

impl FollowedLog {
    /// Begins to follow the log, and waits for its first line.
    ///
    /// # Panics
    /// If the container has no log.
    pub fn start(namespace: &Namespace<'_>, pod: &str, container: &str) -> Self {
        let mut kubectl = command(&tool("kubectl"));
        kubectl.arg("--kubeconfig").arg(namespace.node.cluster.kubeconfig("admin"));
        kubectl.args(["--namespace", &namespace.name, "logs", "--follow", pod, "-c", container]);
        let mut kubectl = kubectl.stdout(Stdio::piped()).spawn().expect("setpriv starts");
        let mut stdout = BufReader::new(kubectl.stdout.take().expect("piped"));
        let mut first = String::new();
        stdout.read_line(&mut first).expect("text");
        assert!(!first.is_empty(), "the log of {pod} is empty");
        Self { kubectl, stdout, first }
    }

    /// Returns the whole log when the container has ended.
    ///
    /// # Panics
    /// If it is not text.
    pub fn until_end(mut self) -> String {
        let mut log = std::mem::take(&mut self.first);
        self.stdout.read_to_string(&mut log).expect("text");
        self.kubectl.wait().expect("it ends with the container");
        log
    }
}
