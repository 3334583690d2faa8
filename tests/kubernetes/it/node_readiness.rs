//! Tests of startup probes that succeed, and of changing readiness, for every kind of probe.

use std::time::Duration;

use kubernetes_tests::node::{Node, condition};
use serde_json::{Value, json};

use crate::node_kinds::{self, ALL, Kind, Ports};
use crate::node_twins::{Twins, compare, ready, started};

const PERIOD: Duration = Duration::from_secs(2);
const FAILURES: u32 = 2;

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_alone_readiness_comes_and_goes_as_without_sidecar() {
    let twins = Twins::new(Node::shared(), "readiness");
    let probe = json!({"periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": FAILURES});
    let startup = json!({"periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 60});
    let late = ["--start-after", "3s"];
    let pod = node_kinds::pod_of_all(&late, &[("startupProbe", startup), ("readinessProbe", probe)]);
    twins.create(&[pod]);
    let all_are = |is_ready: bool| {
        let is_so = |pod: &Value| node_kinds::all().all(|(_, kind)| ready(pod, kind.name) == is_ready);
        twins.until(ALL, &format!("has all its containers ready: {is_ready}"), is_so);
    };
    let turn = |behaviour: &str| {
        let turn = |(ports, kind): (Ports, &Kind)| {
            (ALL, ports.control(), format!("POST /{}/{behaviour}", kind.protocol))
        };
        twins.turn(&node_kinds::all().map(turn).collect::<Vec<_>>())
    };
    all_are(true);
    exec_stays_as_it_is(&twins);
    let failing = turn("failing");
    all_are(false);
    let serving = turn("serving");
    all_are(true);

    for (_, kind) in node_kinds::all() {
        twins.same(ALL, |pod| started(pod, kind.name), &[false, true]);
        let moments = twins.same(ALL, |pod| ready(pod, kind.name), &[false, true, false, true]);
        let after = |start, index: usize| moments.each_ref().map(|moments| moments[index] - start);
        compare(&format!("readiness of {}, failing", kind.name), after(failing, 2), PERIOD * FAILURES);
        compare(&format!("readiness of {}, serving", kind.name), after(serving, 3), PERIOD);
    }
    twins.same(ALL, |pod| condition(pod, "Ready"), &[false, true, false, true]);
}

/// The injector leaves exec probes as declared.
fn exec_stays_as_it_is(twins: &Twins<'_>) {
    let [plain, sidecar] = twins.sides.each_ref().map(|side| side.watch.last(ALL));
    let find = |pod: &Value, name: &str| -> Value {
        let containers = pod["spec"]["containers"].as_array().expect("a list");
        containers
            .iter()
            .find(|container| container["name"] == name)
            .expect("the Pod has this container")
            .clone()
    };
    assert_eq!(find(&plain, "exec"), find(&sidecar, "exec"));
    assert_ne!(find(&plain, "http"), find(&sidecar, "http"));
}
