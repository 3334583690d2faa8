//! Records every state of the Pods of a namespace in order, with the time at which the API server
//! reported it.

use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Deserializer, Value};
use tokio::time::Instant;

use super::Namespace;
use crate::{command, tool};

/// The state of a Pod at one time.
#[derive(Clone, Debug)]
pub struct PodEvent {
    /// The time at which the event was received; the timestamps of the API are whole seconds.
    pub at: Instant,
    pub pod: Value,
}

/// A watch on all Pods of a namespace; it ends when it is dropped, or when the API server exits.
pub struct Watch {
    kubectl: Child,
    seen: Arc<Mutex<Vec<PodEvent>>>,
}

impl Namespace<'_> {
    /// Starts to watch the Pods.
    ///
    /// # Panics
    /// If kubectl cannot be started.
    pub fn watch(&self) -> Watch {
        let mut command = command(&tool("kubectl"));
        command.arg("--kubeconfig").arg(self.node.cluster.kubeconfig("admin"));
        command.arg("--cache-dir").arg(self.node.folder.join("cluster/cache"));
        command.args(["--namespace", &self.name, "get", "pods", "--watch", "-o", "json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut kubectl = command.spawn().expect("setpriv starts");
        let stdout = BufReader::new(kubectl.stdout.take().expect("piped"));
        let seen: Arc<Mutex<Vec<PodEvent>>> = Arc::default();
        let sees = Arc::clone(&seen);
        thread::spawn(move || {
            for pod in Deserializer::from_reader(stdout).into_iter::<Value>().map_while(Result::ok) {
                sees.lock().expect("the mutex is not poisoned").push(PodEvent { at: Instant::now(), pod });
            }
        });
        Watch { kubectl, seen }
    }

    /// Waits until `is_so` is true for a watched Pod.
    ///
    /// # Panics
    /// If that does not happen in time; the message contains its events and logs.
    pub fn wait_until(&self, watch: &Watch, pod: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        let story = || format!("{}\n{}", self.kubectl_ok(&["describe", "pod", pod], ""), self.logs(pod));
        self.node.until_or(&format!("Pod {pod} in {} {what}", self.name), || is_so(&watch.last(pod)), story);
    }
}

impl Watch {
    /// Returns all recorded states of a Pod.
    pub fn events_of(&self, pod: &str) -> Vec<PodEvent> {
        let seen = self.seen.lock().expect("the mutex is not poisoned");
        seen.iter().filter(|event| event.pod["metadata"]["name"] == pod).cloned().collect()
    }

    /// Returns the last recorded state of a Pod; null before the first one.
    pub fn last(&self, pod: &str) -> Value {
        let seen = self.seen.lock().expect("the mutex is not poisoned");
        let last = seen.iter().rev().find(|event| event.pod["metadata"]["name"] == pod);
        last.map_or(Value::Null, |event| event.pod.clone())
    }

    /// Returns the results of `look` for the states of a Pod, without consecutive duplicates.
    pub fn changes<T: PartialEq>(&self, pod: &str, look: impl Fn(&Value) -> T) -> Vec<(Instant, T)> {
        let mut changes = Vec::new();
        for PodEvent { at, pod } in self.events_of(pod) {
            let now = look(&pod);
            if changes.last().is_none_or(|(_, before)| *before != now) {
                changes.push((at, now));
            }
        }
        changes
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Fails if kubectl has already exited.
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}
