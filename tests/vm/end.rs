//! Tests of how a machine leaves: its agent terminates in order, crashes, or hangs.

use std::time::Duration;

use kit::envoy;
use kit::net;
use kit::vm::client::Client;
use kit::vm::client::Way;
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, entry, service};
use kit::vm::machine::Machine;
use kit::vm::scene::{Plan, SOON, Scene};
use nix::sys::signal::Signal;

/// A grace period that is short enough for a test to wait for.
const SHORT: [&str; 2] = ["--disconnect-grace", "2s"];

#[tokio::test]
async fn a_goodbye_is_heard_before_the_agent_ends() {
    // The grace period is so long that only the agent's last report can remove the endpoints.
    let plan = Plan { machines: 3, discovery: vec!["--disconnect-grace", "300s"], ..Plan::default() };
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
async fn a_crashed_agent_is_gone_after_the_grace_and_one_that_returns_within_it_never_was() {
    let mut scene = Scene::start("vm-crash", Plan { discovery: SHORT.into(), ..Plan::default() }).await;
    // The agent reconnects within the grace period: no endpoint is removed.
    scene.machines[1].kill_agent().await;
    scene.stays(&[0, 1], Duration::from_millis(500)).await;
    scene.machines[1].start_agent().expect("the agent starts");
    scene.stays(&[0, 1], Duration::from_secs(4)).await;
    // The agent is down for longer than the grace period: its auto-registered entry is deleted.
    scene.machines[1].kill_agent().await;
    scene.stays(&[0, 1], Duration::from_secs(1)).await;
    scene.until_endpoints(&[0]).await;
    scene.until_view(1, serde_json::Value::is_null).await;
    // The entry is created again.
    scene.machines[1].start_agent().expect("the agent starts");
    scene.until_endpoints(&[0, 1]).await;
}

/// When a machine is cut off from the network, its connection stays open on the discovery server,
/// and PINGs get no response. The missing heartbeat alone would be noticed only after minutes.
#[tokio::test]
async fn a_machine_that_is_cut_off_is_found_by_pings() {
    let scene = Scene::start("vm-cut-off", Plan { discovery: SHORT.into(), ..Plan::default() }).await;
    scene.machines[1].signal(Signal::SIGSTOP);
    scene.stays(&[0, 1], Duration::from_secs(2)).await;
    scene.endpoints_within(&[0], 3 * SOON).await;
    // The agent continues, finds its connection closed, and registers again.
    scene.machines[1].signal(Signal::SIGCONT);
    scene.endpoints_within(&[0, 1], 3 * SOON).await;
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
    scene.endpoints_within(&[0], 2 * SOON).await;
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
