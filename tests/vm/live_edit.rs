//! Tests of configuration changes at run time: running agents get changed probes, and an invalid
//! document is reported and has no effect.

use std::time::Duration;

use kit::app::switched::Behavior;
use kit::vm::documents::{PORT, group, probe};
use kit::vm::fixture::{Fixture, FixtureSettings};
use kit::wait;
use serde_json::{Value, json};

#[tokio::test]
async fn an_edited_probe_is_applied_without_a_flap() {
    let fixture = Fixture::start("vm-edit", FixtureSettings::default()).await;
    let before = fixture.endpoint_changes().await;
    let mut edited = probe();
    edited["httpGet"]["path"] = json!("/somewhere-else");
    edited["failureThreshold"] = json!(2);
    fixture.discovery.configure(&group(&edited));
    for machine in [0, 1] {
        wait::until("the agent to probe the new path", async || {
            is_probed(&fixture, machine, |probe| probe["httpGet"]["path"] == "/somewhere-else").await
        })
        .await;
        let view = fixture.until_view(machine, |workload| workload["agent"]["probeNack"].is_null()).await;
        assert_eq!(view["agent"]["generation"], 1, "no flip: {view:#}");
    }
    // The health now depends on the new probe.
    fixture.machines[1].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[0]).await;
    fixture.assert_endpoint_changes(before, 1).await;
}

#[tokio::test]
async fn a_rejected_probe_leaves_the_previous_one_in_use() {
    let fixture = Fixture::start("vm-nack", FixtureSettings::default()).await;
    let before = fixture.endpoint_changes().await;
    let exec = json!({"periodSeconds": 1, "failureThreshold": 1, "exec": {"command": ["/bin/false"]}});
    fixture.discovery.configure(&group(&exec));
    let view = fixture.until_view(0, |workload| workload["agent"]["probeNack"].is_string()).await;
    assert_eq!(
        view["agent"]["probeNack"],
        "spec.probe.exec: rejected, pushed exec probes require --allow-pushed-exec",
        "{view:#}"
    );
    assert!(is_probed(&fixture, 0, |probe| probe["httpGet"]["port"] == PORT).await);
    // The old probe continues, and the next valid one is accepted.
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[1]).await;
    fixture.assert_endpoint_changes(before, 1).await;
    fixture.discovery.configure(&group(&json!({"periodSeconds": 1, "tcpSocket": {"port": PORT}})));
    fixture.until_endpoints(&[0, 1]).await;
    fixture.until_view(0, |workload| workload["agent"]["probeNack"].is_null()).await;
}

#[tokio::test]
async fn an_invalid_document_is_reported_and_has_no_effect() {
    let fixture = Fixture::start("vm-mistake", FixtureSettings::default()).await;
    let mut broken = probe();
    broken["httpGet"]["port"] = json!(0);
    fixture.discovery.configure(&group(&broken));
    let errors = async || fixture.discovery.view().await["configErrors"].clone();
    wait::until("an error", async || errors().await[0].is_string()).await;
    let errors_now = errors().await;
    let error = errors_now[0].as_str().unwrap_or_default();
    let wanted = "spec.probe.httpGet.port: must be between 1 and 65535, got 0";
    assert!(error.starts_with("WorkloadGroup-payments.yaml:") && error.ends_with(wanted), "{errors_now}");
    fixture.assert_endpoints_stable(&[0, 1], Duration::from_secs(1)).await;
    assert!(is_probed(&fixture, 0, |probe| probe["httpGet"]["port"] == PORT).await);
    fixture.discovery.configure(&group(&probe()));
    wait::until("no error", async || errors().await == json!([])).await;
}

/// Returns whether the probe that this agent currently runs fulfils the condition.
async fn is_probed(fixture: &Fixture, machine: usize, is_wanted: impl Fn(&Value) -> bool) -> bool {
    is_wanted(&fixture.machines[machine].view().await["probe"])
}
