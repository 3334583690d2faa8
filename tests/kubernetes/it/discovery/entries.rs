//! Tests of entries that a user or another controller creates, owns or deletes.

use std::thread::sleep;

use serde_json::{Value, json};

use super::{DISCONNECT_GRACE, Fixture, NAMESPACE, set};
use crate::wait_until;

pub(super) fn annotation(entry: &Value, name: &str) -> String {
    entry["metadata"]["annotations"][name].as_str().unwrap_or_default().to_owned()
}

pub(super) fn manual(fixture: &mut Fixture) {
    let checked = json!({"proxy.istio.io/health-checks-enabled": "true", "owner": "me"});
    fixture.apply(
        "WorkloadEntry",
        "by-hand",
        &checked,
        &json!({"address": "10.0.3.1", "labels": {"app": "payments"}}),
    );
    let agent = fixture.a().connect("", "by-hand", "10.0.3.1");
    agent.report(true);
    wait_until("served", || fixture.b().endpoints() == set(&["10.0.3.1"]));
    agent.report(false);
    wait_until("removed", || fixture.b().endpoints().is_empty());
    agent.report(true);
    wait_until("served again", || fixture.b().endpoints() == set(&["10.0.3.1"]));
    agent.close();
    wait_until("condition is Unknown after the grace period", || {
        fixture.condition("by-hand").as_deref() == Some("Unknown Disconnected")
    });
    wait_until("removed on both replicas", || {
        fixture.a().endpoints().is_empty() && fixture.b().endpoints().is_empty()
    });
    let entry = fixture.entry("by-hand").expect("a manual entry must not be deleted");
    assert_eq!(annotation(&entry, "owner"), "me");
    assert_eq!(entry["spec"], json!({"address": "10.0.3.1", "labels": {"app": "payments"}}));
    fixture.cluster.kubectl_ok(&["delete", "workloadentry", "by-hand", "-n", NAMESPACE], "");
}

pub(super) fn foreign(fixture: &mut Fixture) {
    let name = "payments-10.0.4.1";
    let annotations = json!({
        "istio.io/autoRegistrationGroup": "payments", "istio.io/workloadController": "istiod-7f9c",
        "proxy.istio.io/health-checks-enabled": "true",
    });
    fixture.apply(
        "WorkloadEntry",
        name,
        &annotations,
        &json!({"address": "10.0.4.1", "labels": {"app": "payments"}}),
    );
    let status = |status: &str| {
        let patch = json!({"status": {"conditions": [{"type": "Healthy", "status": status}]}}).to_string();
        let arguments = [
            "patch",
            "workloadentry",
            name,
            "-n",
            NAMESPACE,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        fixture.cluster.kubectl_ok(&arguments, "");
    };
    status("True");
    wait_until("endpoint added by the status of its controller", || {
        fixture.b().endpoints() == set(&["10.0.4.1"])
    });
    status("False");
    wait_until("endpoint removed by the status of its controller", || fixture.b().endpoints().is_empty());
    let before = fixture.entry(name).expect("the entry exists");
    let agent = fixture.a().connect("payments", "", "10.0.4.1");
    agent.report(true);
    sleep(DISCONNECT_GRACE * 2);
    fixture.process_all_writes();
    assert_eq!(
        fixture.entry(name),
        Some(before),
        "the entry must stay unchanged while its controller owns it"
    );
    assert_eq!(agent.acknowledged(), None);
    fixture.cluster.kubectl_ok(&["delete", "workloadentry", name, "-n", NAMESPACE], "");
    wait_until("entry created for the agent after its deletion", || {
        fixture
            .entry(name)
            .is_some_and(|entry| annotation(&entry, "istio.io/workloadController") == "app-health/a")
    });
    agent.report(true);
    wait_until("endpoint of the agent served", || fixture.b().endpoints() == set(&["10.0.4.1"]));
    agent.close();
    wait_until("gone", || fixture.entry(name).is_none());
}

pub(super) fn deleted(fixture: &mut Fixture) {
    let name = "payments-10.0.5.1";
    let agent = fixture.a().connect("payments", "", "10.0.5.1");
    agent.report(true);
    wait_until("served", || fixture.b().endpoints() == set(&["10.0.5.1"]));
    let uid = |fixture: &Fixture| fixture.entry(name).map(|entry| entry["metadata"]["uid"].clone());
    let before = uid(fixture).expect("the entry exists");
    fixture.cluster.kubectl_ok(&["delete", "workloadentry", name, "-n", NAMESPACE], "");
    wait_until("entry created again", || uid(fixture).is_some_and(|uid| uid != before));
    wait_until("entry has the last reported state", || {
        fixture.condition(name).as_deref() == Some("True ProbeSucceeded")
    });
    wait_until("served by both", || {
        fixture.a().endpoints() == set(&["10.0.5.1"]) && fixture.b().endpoints() == set(&["10.0.5.1"])
    });
    agent.close();
    wait_until("gone", || fixture.entry(name).is_none());
}
