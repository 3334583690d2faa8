//! Tests of the kubelet's events about failed probes, which contain the filter's status, for each
//! kind of probe.
//!
//! The kubelet sends at most 25 events of a Pod in a row, including those of the sidecar, so each
//! Pod has one container and few failures.

use kubernetes_tests::node::{Node, container};
use serde_json::{Value, json};

use crate::node_kinds::{self, EventText, KINDS, Ports, ProbeKind};
use crate::node_paired_pods::{PairedPods, ready};

/// A Pod with one container, named like its kind of probe, that listens only after `POST /listen`.
fn pod(kind: &ProbeKind, probes: &[(&str, Value)]) -> Value {
    node_kinds::pod(kind.name, &[kind.container(Ports::of(0), &["--start-after", "600s"], probes)])
}

struct EventTest<'a> {
    paired_pods: PairedPods<'a>,
    kinds: Vec<&'static ProbeKind>,
}

impl EventTest<'_> {
    /// Sets a switch of each application.
    fn set_switches(&self, switch: fn(&ProbeKind) -> String) {
        let to_switch =
            |kind: &&'static ProbeKind| (kind.name, Ports::of(0).control(), format!("POST {}", switch(kind)));
        self.paired_pods.set_switches(&self.kinds.iter().map(to_switch).collect::<Vec<_>>());
    }

    /// Waits until each container fulfils the condition.
    fn until(&self, what: &str, is_so: fn(&Value, &str) -> bool) {
        for kind in &self.kinds {
            self.paired_pods.until(kind.name, what, |pod| is_so(pod, kind.name));
        }
    }

    /// Waits until each container has an event of this probe with the expected words, on both
    /// sides.
    fn wait_for_events(&self, probe: &str, words: fn(&ProbeKind) -> EventText) {
        for kind in &self.kinds {
            for (side, words) in self.paired_pods.sides.iter().zip(words(kind)) {
                side.until_event(kind.name, kind.name, &[&format!("{probe} probe failed"), words]);
            }
        }
    }
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_events_contain_the_status() {
    // The injector does not rewrite exec probes, so their events do not change.
    let kinds: Vec<&'static ProbeKind> = KINDS.iter().filter(|kind| kind.name != "exec").collect();
    let event_test = EventTest { paired_pods: PairedPods::new(Node::shared(), "events"), kinds };
    let probes = [
        ("startupProbe", json!({"periodSeconds": 8, "failureThreshold": 60})),
        ("readinessProbe", json!({"periodSeconds": 4})),
    ];
    event_test
        .paired_pods
        .create(&event_test.kinds.iter().map(|kind| pod(kind, &probes)).collect::<Vec<_>>());
    event_test.until("runs", |pod, name| container(pod, name)["state"]["running"].is_object());
    event_test.wait_for_events("Startup", |kind| kind.not_listening);
    event_test.set_switches(|_| "/listen".to_owned());
    event_test.until("is ready", ready);
    event_test.set_switches(|kind| format!("/{}/failing", kind.protocol));
    event_test.wait_for_events("Readiness", |kind| kind.failing);
    event_test.set_switches(|kind| format!("/{}/{}", kind.protocol, kind.hanging.behavior));
    event_test.wait_for_events("Readiness", |kind| kind.hanging.words);
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_events_report_the_restart_cause() {
    for (field, probe) in [("livenessProbe", "Liveness"), ("startupProbe", "Startup")] {
        let event_test = EventTest {
            paired_pods: PairedPods::new(Node::shared(), &format!("restart-{field}").to_lowercase()),
            kinds: vec![&KINDS[0]],
        };
        event_test
            .paired_pods
            .create(&[pod(&KINDS[0], &[(field, json!({"periodSeconds": 4, "failureThreshold": 2}))])]);
        event_test.wait_for_events(probe, |kind| kind.not_listening);
        for side in &event_test.paired_pods.sides {
            let killed = format!("Container http failed {} probe, will be restarted", probe.to_lowercase());
            side.until_event("http", "http", &[&killed]);
        }
    }
}
