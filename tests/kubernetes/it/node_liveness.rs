//! Tests of containers that kubelet restarts: by the liveness probe when the application is
//! stuck, and by the startup probe when it never listens.

use std::time::Duration;

use kubernetes_tests::node::{Node, container};
use serde_json::{Value, json};

use crate::node_kinds::{self, ALL, Ports, ProbeKind};
use crate::node_paired_pods::{PairedPods, compare, ready, restarts, started};

const PERIOD: Duration = Duration::from_secs(2);
const FAILURES: u32 = 2;
/// A restarted application has to listen before kubelet has counted so many failures.
const LIVENESS_FAILURES: u32 = 3;
/// Long enough for an exec probe on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(3);

fn until_all_restarted(paired_pods: &PairedPods<'_>) {
    let are_restarted = |pod: &Value| node_kinds::all().all(|(_, kind)| restarts(pod, kind.name) > 0);
    paired_pods.until(ALL, "has had all its containers restarted", are_restarted);
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_liveness_restarts_as_without_sidecar() {
    let paired_pods = PairedPods::new(Node::shared(), "liveness");
    let probe = json!({
        "periodSeconds": 2, "failureThreshold": LIVENESS_FAILURES, "timeoutSeconds": TIMEOUT.as_secs(),
    });
    paired_pods.create(&[node_kinds::pod_of_all(&[], &[("livenessProbe", probe)])]);
    let until_all_are_ready = || {
        let are_ready = |pod: &Value| node_kinds::all().all(|(_, kind)| ready(pod, kind.name));
        paired_pods.until(ALL, "has all its containers ready", are_ready);
    };
    until_all_are_ready();
    let switch = |(ports, kind): (Ports, &ProbeKind)| {
        (ALL, ports.control(), format!("POST /{}/{}", kind.protocol, kind.hanging.behavior))
    };
    let hanging = paired_pods.set_switches(&node_kinds::all().map(switch).collect::<Vec<_>>());
    until_all_restarted(&paired_pods);
    until_all_are_ready();
    for (_, kind) in node_kinds::all() {
        let moments = paired_pods.assert_same_changes(ALL, |pod| restarts(pod, kind.name), &[0, 1]);
        let after = moments.map(|moments| {
            assert!(moments[1] > hanging, "{} was restarted before it was hanging", kind.name);
            moments[1] - hanging
        });
        compare(
            &format!("{} restarted by liveness", kind.name),
            after,
            (PERIOD + TIMEOUT) * LIVENESS_FAILURES,
        );
    }
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_startup_kills_as_without_sidecar() {
    let paired_pods = PairedPods::new(Node::shared(), "startup");
    let probe = json!({"periodSeconds": 2, "failureThreshold": FAILURES});
    paired_pods.create(&[node_kinds::pod_of_all(&["--start-after", "600s"], &[("startupProbe", probe)])]);
    until_all_restarted(&paired_pods);
    for (_, kind) in node_kinds::all() {
        paired_pods.assert_same_changes(ALL, |pod| started(pod, kind.name), &[false]);
        let is_first_run = |pod: &Value| {
            container(pod, kind.name)["state"]["running"].is_object() && restarts(pod, kind.name) == 0
        };
        let lives = paired_pods.sides.each_ref().map(|side| {
            let lives = side.watch.changes(ALL, is_first_run);
            let [_, (start, true), (end, false), ..] = lives[..] else { panic!("{}: {lives:?}", kind.name) };
            end - start
        });
        compare(&format!("{} killed by startup", kind.name), lives, (PERIOD + TIMEOUT) * FAILURES);
    }
}
