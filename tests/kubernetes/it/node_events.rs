//! Tests of the kubelet's events about failed probes, which contain the filter's status, for each
//! kind of probe.
//!
//! The kubelet sends at most 25 events of a Pod in a row, including those of the sidecar, so each
//! Pod has one container and few failures.

use kubernetes_tests::node::{Node, container};
use serde_json::{Value, json};

use crate::node_kinds::{self, KINDS, Kind, Ports, Words};
use crate::node_twins::{Twins, ready};

/// A Pod with one container, named like its kind of probe, that listens only after `POST /listen`.
fn pod(kind: &Kind, probes: &[(&str, Value)]) -> Value {
    node_kinds::pod(kind.name, &[kind.container(Ports::of(0), &["--start-after", "600s"], probes)])
}

struct Told<'a> {
    twins: Twins<'a>,
    kinds: Vec<&'static Kind>,
}

impl Told<'_> {
    /// Sets a switch of each application.
    fn turn(&self, switch: fn(&Kind) -> String) {
        let turn =
            |kind: &&'static Kind| (kind.name, Ports::of(0).control(), format!("POST {}", switch(kind)));
        self.twins.turn(&self.kinds.iter().map(turn).collect::<Vec<_>>());
    }

    /// Waits until each container fulfils the condition.
    fn until(&self, what: &str, is_so: fn(&Value, &str) -> bool) {
        for kind in &self.kinds {
            self.twins.until(kind.name, what, |pod| is_so(pod, kind.name));
        }
    }

    /// Waits until each container has an event of this probe with the expected words, on both
    /// sides.
    fn until_told(&self, probe: &str, words: fn(&Kind) -> Words) {
        for kind in &self.kinds {
            for (side, words) in self.twins.sides.iter().zip(words(kind)) {
                side.until_event(kind.name, kind.name, &[&format!("{probe} probe failed"), words]);
            }
        }
    }
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_events_tell_our_status() {
    // The injector does not rewrite exec probes, so their events do not change.
    let kinds: Vec<&'static Kind> = KINDS.iter().filter(|kind| kind.name != "exec").collect();
    let told = Told { twins: Twins::new(Node::shared(), "events"), kinds };
    let probes = [
        ("startupProbe", json!({"periodSeconds": 8, "failureThreshold": 60})),
        ("readinessProbe", json!({"periodSeconds": 4})),
    ];
    told.twins.create(&told.kinds.iter().map(|kind| pod(kind, &probes)).collect::<Vec<_>>());
    told.until("runs", |pod, name| container(pod, name)["state"]["running"].is_object());
    told.until_told("Startup", |kind| kind.absent);
    told.turn(|_| "/listen".to_owned());
    told.until("is ready", ready);
    told.turn(|kind| format!("/{}/failing", kind.protocol));
    told.until_told("Readiness", |kind| kind.failing);
    told.turn(|kind| format!("/{}/{}", kind.protocol, kind.stuck.behaviour));
    told.until_told("Readiness", |kind| kind.stuck.words);
}

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn node_events_tell_why_a_container_is_started_anew() {
    for (field, probe) in [("livenessProbe", "Liveness"), ("startupProbe", "Startup")] {
        let told = Told {
            twins: Twins::new(Node::shared(), &format!("anew-{field}").to_lowercase()),
            kinds: vec![&KINDS[0]],
        };
        told.twins.create(&[pod(&KINDS[0], &[(field, json!({"periodSeconds": 4, "failureThreshold": 2}))])]);
        told.until_told(probe, |kind| kind.absent);
        for side in &told.twins.sides {
            let killed = format!("Container http failed {} probe, will be restarted", probe.to_lowercase());
            side.until_event("http", "http", &[&killed]);
        }
    }
}
