//! Tests of entries that a user or another controller creates, owns or deletes.

use std::thread::sleep;

use serde_json::{Value, json};

use super::steps::GRACE;
use super::{NAMESPACE, World, set};
use crate::within;

pub(super) fn annotation(entry: &Value, name: &str) -> String {
    entry["metadata"]["annotations"][name].as_str().unwrap_or_default().to_owned()
}

pub(super) fn manual(world: &mut World) {
    let checked = json!({"proxy.istio.io/health-checks-enabled": "true", "owner": "me"});
    world.apply(
        "WorkloadEntry",
        "by-hand",
        &checked,
        &json!({"address": "10.0.3.1", "labels": {"app": "payments"}}),
    );
    let agent = world.a().connect("", "by-hand", "10.0.3.1");
    agent.report(true);
    within("served", 10, || world.b().endpoints() == set(&["10.0.3.1"]));
    agent.report(false);
    within("removed", 10, || world.b().endpoints().is_empty());
    agent.report(true);
    within("served again", 10, || world.b().endpoints() == set(&["10.0.3.1"]));
    agent.close();
    within("condition is Unknown after the grace period", 20, || {
        world.condition("by-hand").as_deref() == Some("Unknown Disconnected")
    });
    within("removed on both replicas", 10, || {
        world.a().endpoints().is_empty() && world.b().endpoints().is_empty()
    });
    let entry = world.entry("by-hand").expect("a manual entry must not be deleted");
    assert_eq!(annotation(&entry, "owner"), "me");
    assert_eq!(entry["spec"], json!({"address": "10.0.3.1", "labels": {"app": "payments"}}));
    world.cluster.done(&["delete", "workloadentry", "by-hand", "-n", NAMESPACE], "");
}

pub(super) fn foreign(world: &mut World) {
    let name = "payments-10.0.4.1";
    let annotations = json!({
        "istio.io/autoRegistrationGroup": "payments", "istio.io/workloadController": "istiod-7f9c",
        "proxy.istio.io/health-checks-enabled": "true",
    });
    world.apply(
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
        world.cluster.done(&arguments, "");
    };
    status("True");
    within("endpoint added by the status of its controller", 10, || {
        world.b().endpoints() == set(&["10.0.4.1"])
    });
    status("False");
    within("endpoint removed by the status of its controller", 10, || world.b().endpoints().is_empty());
    let before = world.entry(name).expect("the entry exists");
    let agent = world.a().connect("payments", "", "10.0.4.1");
    agent.report(true);
    sleep(GRACE * 2);
    world.process_all_writes();
    assert_eq!(world.entry(name), Some(before), "the entry must stay unchanged while its controller owns it");
    assert_eq!(agent.acknowledged(), None);
    world.cluster.done(&["delete", "workloadentry", name, "-n", NAMESPACE], "");
    within("entry created for the agent after its deletion", 20, || {
        world
            .entry(name)
            .is_some_and(|entry| annotation(&entry, "istio.io/workloadController") == "app-health/a")
    });
    agent.report(true);
    within("endpoint of the agent served", 10, || world.b().endpoints() == set(&["10.0.4.1"]));
    agent.close();
    within("gone", 20, || world.entry(name).is_none());
}

pub(super) fn deleted(world: &mut World) {
    let name = "payments-10.0.5.1";
    let agent = world.a().connect("payments", "", "10.0.5.1");
    agent.report(true);
    within("served", 10, || world.b().endpoints() == set(&["10.0.5.1"]));
    let uid = |world: &World| world.entry(name).map(|entry| entry["metadata"]["uid"].clone());
    let before = uid(world).expect("the entry exists");
    world.cluster.done(&["delete", "workloadentry", name, "-n", NAMESPACE], "");
    within("entry created again", 10, || uid(world).is_some_and(|uid| uid != before));
    within("entry has the last reported state", 10, || {
        world.condition(name).as_deref() == Some("True ProbeSucceeded")
    });
    within("served by both", 10, || {
        world.a().endpoints() == set(&["10.0.5.1"]) && world.b().endpoints() == set(&["10.0.5.1"])
    });
    agent.close();
    within("gone", 20, || world.entry(name).is_none());
}
