//! What becomes of the Pods of a namespace, each step of it, in order, with the moment when the API server told it.

use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Deserializer, Value};
use tokio::time::Instant;

use super::Space;
use crate::kubernetes::{command, tool};

/// A Pod at a moment.
#[derive(Clone, Debug)]
pub struct Sight {
    /// When we were told. The API's own times are whole seconds.
    pub at: Instant,
    /// The Pod as it was then.
    pub pod: Value,
}

/// A watch on all Pods of a namespace; it ends when it is dropped, or when the API server does.
pub struct Watch {
    kubectl: Child,
    seen: Arc<Mutex<Vec<Sight>>>,
}

impl Space<'_> {
    /// Watches the Pods from now on.
    ///
    /// # Panics
    /// When kubectl cannot be started.
    pub fn watch(&self) -> Watch {
        let mut command = command(&tool("kubectl"));
        command.arg("--kubeconfig").arg(self.node.cluster.kubeconfig("admin"));
        command.arg("--cache-dir").arg(self.node.folder.join("cluster/cache"));
        command.args(["--namespace", &self.name, "get", "pods", "--watch", "-o", "json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut kubectl = command.spawn().expect("setpriv starts");
        let stdout = BufReader::new(kubectl.stdout.take().expect("piped"));
        let seen: Arc<Mutex<Vec<Sight>>> = Arc::default();
        let sees = Arc::clone(&seen);
        thread::spawn(move || {
            for pod in Deserializer::from_reader(stdout).into_iter::<Value>().map_while(Result::ok) {
                sees.lock().expect("no holder panics").push(Sight { at: Instant::now(), pod });
            }
        });
        Watch { kubectl, seen }
    }

    /// Waits until a watched Pod is so.
    ///
    /// # Panics
    /// When it never is; with its events and logs.
    pub fn until_seen(&self, watch: &Watch, pod: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        let story = || format!("{}\n{}", self.done(&["describe", "pod", pod], ""), self.logs(pod));
        self.node.until_or(&format!("Pod {pod} in {} {what}", self.name), || is_so(&watch.last(pod)), story);
    }
}

impl Watch {
    /// All that was seen of one Pod.
    pub fn sights(&self, pod: &str) -> Vec<Sight> {
        let seen = self.seen.lock().expect("no holder panics");
        seen.iter().filter(|sight| sight.pod["metadata"]["name"] == pod).cloned().collect()
    }

    /// The Pod as it was last; null before it was seen.
    pub fn last(&self, pod: &str) -> Value {
        let seen = self.seen.lock().expect("no holder panics");
        let last = seen.iter().rev().find(|sight| sight.pod["metadata"]["name"] == pod);
        last.map_or(Value::Null, |sight| sight.pod.clone())
    }

    /// What `look` made of the Pod, each time that it became another.
    pub fn changes<T: PartialEq>(&self, pod: &str, look: impl Fn(&Value) -> T) -> Vec<(Instant, T)> {
        let mut changes = Vec::new();
        for Sight { at, pod } in self.sights(pod) {
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
        // It may have ended.
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}
