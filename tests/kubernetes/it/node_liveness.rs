//! Tests of containers that the kubelet restarts: by the liveness probe when the application is
//! stuck, and by the startup probe when it never listens.

use std::time::Duration;

use kubernetes_tests::node::{Node, container};
use serde_json::{Value, json};

use crate::node_kinds::{self, ALL, Kind, Ports};
use crate::node_twins::{Twins, compare, ready, restarts, started};

const PERIOD: Duration = Duration::from_secs(2);
const FAILURES: u32 = 2;
/// Long enough for an exec probe on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(3);

fn until_all_started_anew(twins: &Twins<'_>) {
    let are_anew = |pod: &Value| node_kinds::all().all(|(_, kind)| restarts(pod, kind.name) > 0);
    twins.until(ALL, "has had all its containers restarted", are_anew);
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_liveness_starts_anew_as_without_sidecar() {
    let twins = Twins::new(Node::shared(), "liveness");
    let probe =
        json!({"periodSeconds": 2, "failureThreshold": FAILURES, "timeoutSeconds": TIMEOUT.as_secs()});
    twins.create(&[node_kinds::pod_of_all(&[], &[("livenessProbe", probe)])]);
    let until_all_are_ready = || {
        let are_ready = |pod: &Value| node_kinds::all().all(|(_, kind)| ready(pod, kind.name));
        twins.until(ALL, "has all its containers ready", are_ready);
    };
    until_all_are_ready();
    let turn = |(ports, kind): (Ports, &Kind)| {
        (ALL, ports.control(), format!("POST /{}/{}", kind.protocol, kind.stuck.behaviour))
    };
    let stuck = twins.turn(&node_kinds::all().map(turn).collect::<Vec<_>>());
    until_all_started_anew(&twins);
    until_all_are_ready();
    for (_, kind) in node_kinds::all() {
        let moments = twins.same(ALL, |pod| restarts(pod, kind.name), &[0, 1]);
        let after = moments.map(|moments| {
            assert!(moments[1] > stuck, "{} was restarted before it was stuck", kind.name);
            moments[1] - stuck
        });
        compare(&format!("{} restarted by liveness", kind.name), after, (PERIOD + TIMEOUT) * FAILURES);
    }
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_startup_gives_up_as_without_sidecar() {
    let twins = Twins::new(Node::shared(), "startup");
    let probe = json!({"periodSeconds": 2, "failureThreshold": FAILURES});
    twins.create(&[node_kinds::pod_of_all(&["--start-after", "600s"], &[("startupProbe", probe)])]);
    until_all_started_anew(&twins);
    for (_, kind) in node_kinds::all() {
        twins.same(ALL, |pod| started(pod, kind.name), &[false]);
        let is_first_life = |pod: &Value| {
            container(pod, kind.name)["state"]["running"].is_object() && restarts(pod, kind.name) == 0
        };
        let lives = twins.sides.each_ref().map(|side| {
            let lives = side.watch.changes(ALL, is_first_life);
            let [_, (start, true), (end, false), ..] = lives[..] else { panic!("{}: {lives:?}", kind.name) };
            end - start
        });
        compare(&format!("{} killed by startup", kind.name), lives, (PERIOD + TIMEOUT) * FAILURES);
    }
}
