//! Tests of startup probes that succeed, and of changing readiness, for every kind of probe.

use std::time::Duration;

use kubernetes_tests::node::{Node, condition};
use serde_json::{Value, json};

use crate::node_kinds::{self, ALL, Ports, ProbeKind};
use crate::node_paired_pods::{PairedPods, compare, ready, started};

const PERIOD: Duration = Duration::from_secs(2);
const FAILURES: u32 = 2;

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_alone_readiness_changes_as_without_sidecar() {
    let paired_pods = PairedPods::new(Node::shared(), "readiness");
    let probe = json!({"periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": FAILURES});
    let startup = json!({"periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 60});
    let late = ["--start-after", "3s"];
    let pod = node_kinds::pod_of_all(&late, &[("startupProbe", startup), ("readinessProbe", probe)]);
    paired_pods.create(&[pod]);
    let all_are = |is_ready: bool| {
        let is_so = |pod: &Value| node_kinds::all().all(|(_, kind)| ready(pod, kind.name) == is_ready);
        paired_pods.until(ALL, &format!("has all its containers ready: {is_ready}"), is_so);
    };
    let set_all = |behavior: &str| {
        let switch = |(ports, kind): (Ports, &ProbeKind)| {
            (ALL, ports.control(), format!("POST /{}/{behavior}", kind.protocol))
        };
        paired_pods.set_switches(&node_kinds::all().map(switch).collect::<Vec<_>>())
    };
    all_are(true);
    assert_exec_unchanged(&paired_pods);
    let failing = set_all("failing");
    all_are(false);
    let serving = set_all("serving");
    all_are(true);

    for (_, kind) in node_kinds::all() {
        paired_pods.assert_same_changes(ALL, |pod| started(pod, kind.name), &[false, true]);
        let moments =
            paired_pods.assert_same_changes(ALL, |pod| ready(pod, kind.name), &[false, true, false, true]);
        let after = |start, index: usize| moments.each_ref().map(|moments| moments[index] - start);
        compare(&format!("readiness of {}, failing", kind.name), after(failing, 2), PERIOD * FAILURES);
        compare(&format!("readiness of {}, serving", kind.name), after(serving, 3), PERIOD);
    }
    paired_pods.assert_same_changes(ALL, |pod| condition(pod, "Ready"), &[false, true, false, true]);
}

/// The injector leaves exec probes as declared.
fn assert_exec_unchanged(paired_pods: &PairedPods<'_>) {
    let [baseline, sidecar] = paired_pods.sides.each_ref().map(|side| side.watch.last(ALL));
    let find = |pod: &Value, name: &str| -> Value {
        let containers = pod["spec"]["containers"].as_array().expect("a list");
        containers
            .iter()
            .find(|container| container["name"] == name)
            .expect("the Pod has this container")
            .clone()
    };
    assert_eq!(find(&baseline, "exec"), find(&sidecar, "exec"));
    assert_ne!(find(&baseline, "http"), find(&sidecar, "http"));
}
