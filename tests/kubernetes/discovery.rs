//! Two replicas of `app-health discovery --store kubernetes` and a released API server: `./justw test-kubernetes`.
//!
//! Agents are scripted; the replicas have no rights but those of the shipped manifests.

mod agent;
mod conflicts;
mod outages;
mod replica;
mod steps;
mod stream;

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::Cluster;
use replica::Replica;
pub(crate) use steps::STEPS;

/// Where workloads are.
pub(crate) const NAMESPACE: &str = "shop";
/// Where discovery is.
const SYSTEM: &str = "app-health-system";

/// The API server, and the replicas in front of it.
pub(crate) struct World {
    cluster: Cluster,
    a: Option<Replica>,
    b: Option<Replica>,
}

impl World {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster, a: None, b: None }
    }

    fn a(&self) -> &Replica {
        self.a.as_ref().expect("it runs")
    }

    fn b(&self) -> &Replica {
        self.b.as_ref().expect("it runs")
    }

    /// Applies objects of networking.istio.io.
    fn apply(&self, kind: &str, name: &str, annotations: &Value, spec: &Value) {
        let object = json!({
            "apiVersion": "networking.istio.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations}, "spec": spec,
        });
        self.cluster.done(&["apply", "-f", "-"], &object.to_string());
    }

    /// A WorkloadEntry, if it is there.
    fn entry(&self, name: &str) -> Option<Value> {
        let output = self.cluster.kubectl(&["get", "workloadentry", name, "-n", NAMESPACE, "-o", "json"], "");
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// An entry's condition, as `True ProbeSucceeded`.
    fn condition(&self, name: &str) -> Option<String> {
        let entry = self.entry(name)?;
        let conditions = entry["status"]["conditions"].as_array()?.clone();
        let healthy = conditions.iter().find(|condition| condition["type"] == "Healthy")?;
        let text = |name: &str| healthy[name].as_str().unwrap_or_default().to_owned();
        Some(format!("{} {}", text("status"), text("reason")))
    }
}

/// Waits until `done`, for `seconds` at most, and says how long it took.
#[expect(clippy::print_stdout, reason = "what a test of minutes does meanwhile")]
fn within(what: &str, seconds: u64, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(seconds), "{what}: not within {seconds} s");
        sleep(Duration::from_millis(20));
    }
    println!("  {what}: {} ms", begin.elapsed().as_millis());
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
