//! Tests of two replicas of `app-health discovery --store kubernetes` with a released API server
//! (`./justw test-kubernetes`).
//!
//! The agents are scripted, and the replicas have only the permissions of the shipped manifests.

mod agent;
mod api_proxy;
mod conflicts;
mod entries;
mod outages;
mod overload;
mod replica;
mod steps;

use std::collections::BTreeSet;
use std::time::Duration;

use kubernetes_tests::Cluster;
use serde_json::{Value, json};

use crate::wait_until;
use replica::Replica;
pub(crate) use steps::STEPS;

/// The namespace of the workloads.
pub(crate) const NAMESPACE: &str = "shop";
/// The namespace of the discovery server.
const SYSTEM: &str = "app-health-system";

/// The grace period of a lost connection. It is short, because the tests check which replica acts
/// and that none acts too early, not how long it waits.
const DISCONNECT_GRACE: Duration = Duration::from_secs(3);

/// The API server and the replicas. The replicas are dropped first, because their logs are in the
/// cluster's directory.
pub(crate) struct Fixture {
    a: Option<Replica>,
    b: Option<Replica>,
    cluster: Cluster,
}

impl Fixture {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { a: None, b: None, cluster }
    }

    fn a(&self) -> &Replica {
        self.a.as_ref().expect("the replica runs")
    }

    fn b(&self) -> &Replica {
        self.b.as_ref().expect("the replica runs")
    }

    /// Applies an object of the API group networking.istio.io.
    fn apply(&self, kind: &str, name: &str, annotations: &Value, spec: &Value) {
        let object = json!({
            "apiVersion": "networking.istio.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations}, "spec": spec,
        });
        self.cluster.apply(&object.to_string());
    }

    /// Returns a WorkloadEntry, or `None` if it does not exist.
    fn entry(&self, name: &str) -> Option<Value> {
        let output = self.cluster.kubectl(&["get", "workloadentry", name, "-n", NAMESPACE, "-o", "json"], "");
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// Waits until the first replica has stored a report of another agent, so that all its earlier
    /// writes are visible too.
    fn process_all_writes(&self) {
        const MARKER: &str = "10.0.250.1";
        let agent = self.a().connect("payments", "", MARKER);
        let generation = agent.report(true);
        wait_until("report of another agent acknowledged", || agent.acknowledged() == Some(generation));
        agent.close();
        let entry = format!("payments-{MARKER}");
        wait_until("its entry deleted", || {
            self.entry(&entry).is_none()
                && ![self.a(), self.b()].iter().any(|replica| replica.endpoints().contains(MARKER))
        });
    }

    /// Returns status and reason of an entry's condition Healthy, such as `True ProbeSucceeded`.
    fn condition(&self, name: &str) -> Option<String> {
        let entry = self.entry(name)?;
        let conditions = entry["status"]["conditions"].as_array()?.clone();
        let healthy = conditions.iter().find(|condition| condition["type"] == "Healthy")?;
        let text = |name: &str| healthy[name].as_str().unwrap_or_default().to_owned();
        Some(format!("{} {}", text("status"), text("reason")))
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
