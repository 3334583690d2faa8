//! Tests of configuration changes at run time: running agents get changed probes, and an invalid
//! document is reported and has no effect.

use std::time::Duration;

use kit::app::switched::Behaviour;
use kit::vm::documents::{PORT, group, probe};
use kit::vm::scene::{Plan, Scene};
use kit::vm::wait;
use serde_json::{Value, json};

#[tokio::test]
async fn an_edited_probe_reaches_the_agents_without_a_flap() {
    let scene = Scene::start("vm-edit", Plan::default()).await;
    let before = scene.changes().await;
    let mut edited = probe();
    edited["httpGet"]["path"] = json!("/somewhere-else");
    edited["failureThreshold"] = json!(2);
    scene.discovery.configure(&group(&edited));
    for machine in [0, 1] {
        wait::until("the agent to probe the new path", async || {
            is_probed(&scene, machine, |probe| probe["httpGet"]["path"] == "/somewhere-else").await
        })
        .await;
        let view = scene.until_view(machine, |workload| workload["agent"]["probeNack"].is_null()).await;
        assert_eq!(view["agent"]["generation"], 1, "no flip: {view:#}");
    }
    // The health now depends on the new probe.
    scene.machines[1].application.behave(Behaviour::Failing);
    scene.until_endpoints(&[0]).await;
    scene.has_changed_only(before, 1).await;
}

#[tokio::test]
async fn a_probe_that_an_agent_refuses_leaves_the_old_one_in_force() {
    let scene = Scene::start("vm-nack", Plan::default()).await;
    let before = scene.changes().await;
    let exec = json!({"periodSeconds": 1, "failureThreshold": 1, "exec": {"command": ["/bin/false"]}});
    scene.discovery.configure(&group(&exec));
    let view = scene.until_view(0, |workload| workload["agent"]["probeNack"].is_string()).await;
    assert_eq!(
        view["agent"]["probeNack"],
        "spec.probe.exec: rejected, pushed exec probes require --allow-pushed-exec",
        "{view:#}"
    );
    assert!(is_probed(&scene, 0, |probe| probe["httpGet"]["port"] == PORT).await);
    // The old probe continues, and the next valid one is accepted.
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.until_endpoints(&[1]).await;
    scene.has_changed_only(before, 1).await;
    scene.discovery.configure(&group(&json!({"periodSeconds": 1, "tcpSocket": {"port": PORT}})));
    scene.until_endpoints(&[0, 1]).await;
    scene.until_view(0, |workload| workload["agent"]["probeNack"].is_null()).await;
}

#[tokio::test]
async fn a_document_with_a_mistake_is_named_and_changes_nothing() {
    let scene = Scene::start("vm-mistake", Plan::default()).await;
    let mut broken = probe();
    broken["httpGet"]["port"] = json!(0);
    scene.discovery.configure(&group(&broken));
    let errors = async || scene.discovery.view().await["configErrors"].clone();
    wait::until("an error", async || errors().await[0].is_string()).await;
    let errors_now = errors().await;
    let error = errors_now[0].as_str().unwrap_or_default();
    let wanted = "spec.probe.httpGet.port: must be between 1 and 65535, got 0";
    assert!(error.starts_with("WorkloadGroup-payments.yaml:") && error.ends_with(wanted), "{errors_now}");
    scene.stays(&[0, 1], Duration::from_secs(1)).await;
    assert!(is_probed(&scene, 0, |probe| probe["httpGet"]["port"] == PORT).await);
    scene.discovery.configure(&group(&probe()));
    wait::until("no error", async || errors().await == json!([])).await;
}

/// Returns whether the probe that this agent currently runs fulfils the condition.
async fn is_probed(scene: &Scene, machine: usize, is_wanted: impl Fn(&Value) -> bool) -> bool {
    is_wanted(&scene.machines[machine].view().await["probe"])
}
