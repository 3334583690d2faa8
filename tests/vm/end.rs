//! Tests of how a machine leaves: its agent terminates in order, crashes, or hangs.

use std::time::Duration;

use kit::app::switched::Behaviour;
use kit::envoy;
use kit::net;
use kit::vm::client::Client;
use kit::vm::client::Way;
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, entry, service};
use kit::vm::machine::Machine;
use kit::vm::scene::{Plan, Scene};
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::time::Instant;

/// A grace period that is short enough for a test to wait for.
const GRACE: Duration = Duration::from_secs(2);
const SHORT: [&str; 2] = ["--disconnect-grace", "2s"];
/// A grace period that ends after every test.
const LONG: [&str; 2] = ["--disconnect-grace", "3600s"];

#[tokio::test]
async fn a_goodbye_is_heard_before_the_agent_ends() {
    // The grace period is so long that only the agent's last report can remove the endpoints.
    let plan = Plan { machines: 3, discovery: LONG.into(), ..Plan::default() };
    let mut scene = Scene::start("vm-goodbye", plan).await;
    scene.machines[2].signal(Signal::SIGTERM);
    scene.until_endpoints(&[0, 1]).await;
    assert_eq!(scene.machines[2].agent_end().await, Some(0), "{}", scene.machines[2].log());
    let workload = scene.until_view(2, |workload| !workload["condition"].is_null()).await;
    assert_eq!(
        (&workload["condition"]["status"], &workload["condition"]["reason"]),
        (&"False".into(), &"Terminating".into()),
        "{workload:#}"
    );

    assert_eq!(scene.machines[1].drain().await, 200, "{}", scene.machines[1].log());
    scene.until_endpoints(&[0]).await;
    scene.until_view(1, |workload| workload["condition"]["reason"] == "Draining").await;
}

#[tokio::test]
async fn an_agent_that_reconnects_within_the_grace_period_keeps_its_endpoint() {
    let mut scene = Scene::start("vm-reconnect", Plan { discovery: LONG.into(), ..Plan::default() }).await;
    let session = |workload: &Value| workload["agent"]["session"].as_u64();
    let first = session(&scene.until_view(1, |workload| session(workload).is_some()).await);
    let before = scene.changes().await;
    scene.machines[1].kill_agent().await;
    scene.until_view(1, |workload| workload["agent"]["connected"] == false).await;
    scene.machines[1].start_agent().expect("the agent starts");
    scene
        .until_view(1, |workload| session(workload) > first && workload["condition"]["status"] == "True")
        .await;
    // Envoy has processed all earlier responses once it has this change.
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.until_endpoints(&[1]).await;
    scene.has_changed_only(before, 1).await;
}

#[tokio::test]
async fn a_crashed_agent_is_removed_after_the_grace_period() {
    let mut scene = Scene::start("vm-crash", Plan { discovery: SHORT.into(), ..Plan::default() }).await;
    let begin = Instant::now();
    scene.machines[1].kill_agent().await;
    scene.until_endpoints(&[0]).await;
    assert!(begin.elapsed() >= GRACE, "an endpoint must stay during the grace period");
    // The entry was created by auto-registration, so it is deleted.
    scene.until_view(1, Value::is_null).await;
    // The entry is created again.
    scene.machines[1].start_agent().expect("the agent starts");
    scene.until_endpoints(&[0, 1]).await;
}

/// When a machine is cut off from the network, its connection stays open on the discovery server,
/// and PINGs get no response. The missing heartbeat alone would be noticed only after minutes.
#[tokio::test]
async fn a_machine_that_is_cut_off_is_found_by_pings() {
    let scene = Scene::start("vm-cut-off", Plan { discovery: SHORT.into(), ..Plan::default() }).await;
    let begin = Instant::now();
    scene.machines[1].signal(Signal::SIGSTOP);
    scene.until_endpoints(&[0]).await;
    assert!(begin.elapsed() >= GRACE, "an endpoint must stay during the grace period");
    // The agent continues, finds its connection closed, and registers again.
    scene.machines[1].signal(Signal::SIGCONT);
    scene.until_endpoints(&[0, 1]).await;
}

/// Starts a machine whose entry an operator created, and stops its agent, which then keeps its
/// connection open without sending anything. Returns the reason of the condition Unknown.
async fn silent(name: &str, policy: &'static str) -> (Scene, String) {
    let (folder, ip) = (envoy::folder(name), net::loopback());
    let documents = [entry("manual", &ip.to_string()), service()];
    let mut discovery = Discovery::new(&folder, &documents);
    discovery = discovery.flags(&SHORT).flags(&["--heartbeat", "1s", "--unknown-policy", policy]);
    discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    let mut machine = Machine::new(&folder, "m1", ip).await;
    machine.tell(&["--discovery", &discovery.plaintext().to_string(), "--discovery-plaintext"]);
    machine.tell(&["--workload-entry", "manual", "--namespace", NAMESPACE, "--service-account", GROUP]);
    let file = folder.join("group.yaml");
    std::fs::write(&file, kit::vm::documents::group(&kit::vm::documents::probe()).to_string())
        .expect("a writable folder");
    machine.tell(&["--workload-group", file.to_str().expect("a path")]);
    machine.start_agent().expect("the agent starts");
    let client = Client::start(&folder, "client", net::loopback(), &Way::sotw(discovery.plaintext())).await;
    let scene = Scene { folder, machines: vec![machine], client, discovery };
    scene.until_endpoints(&[0]).await;
    scene.machines[0].signal(Signal::SIGSTOP);
    let view = scene.until_view(0, |workload| workload["condition"]["status"] == "Unknown").await;
    let reason = view["condition"]["reason"].as_str().unwrap_or_default().to_owned();
    (scene, reason)
}

#[tokio::test]
async fn a_silent_agent_becomes_unknown_and_its_endpoint_leaves() {
    let (scene, reason) = silent("vm-silent", "remove").await;
    assert_eq!(reason, "AgentSilent");
    scene.until_endpoints(&[]).await;
    // The agent continues.
    scene.machines[0].signal(Signal::SIGCONT);
    scene.until_endpoints(&[0]).await;
}

#[tokio::test]
async fn an_unknown_workload_stays_where_the_policy_says_so() {
    let (mut scene, reason) = silent("vm-unknown", "keep").await;
    assert_eq!(reason, "AgentSilent");
    scene.stays(&[0], Duration::from_secs(1)).await;
    // The agent is killed: the reason changes, the endpoint stays.
    scene.machines[0].kill_agent().await;
    scene.until_view(0, |workload| workload["condition"]["reason"] == "Disconnected").await;
    scene.stays(&[0], Duration::from_secs(1)).await;
}
