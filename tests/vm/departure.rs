//! Tests of how a machine leaves: its agent terminates in order, crashes, or hangs.

use std::time::Duration;

use kit::app::switched::Behavior;
use kit::envoy;
use kit::net;
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, entry, service};
use kit::vm::envoy_client::EnvoyClient;
use kit::vm::envoy_client::Subscription;
use kit::vm::fixture::{Fixture, FixtureSettings};
use kit::vm::machine::Machine;
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::time::Instant;

/// A grace period that is short enough for a test to wait for.
const GRACE: Duration = Duration::from_secs(2);
const SHORT: [&str; 2] = ["--disconnect-grace", "2s"];
/// A grace period that ends after every test.
const LONG: [&str; 2] = ["--disconnect-grace", "3600s"];

#[tokio::test]
async fn a_final_report_removes_the_endpoint_before_the_agent_exits() {
    // The grace period is so long that only the agent's last report can remove the endpoints.
    let settings = FixtureSettings { machines: 3, discovery: LONG.into(), ..FixtureSettings::default() };
    let mut fixture = Fixture::start("vm-final_report", settings).await;
    fixture.machines[2].signal(Signal::SIGTERM);
    fixture.until_endpoints(&[0, 1]).await;
    assert_eq!(fixture.machines[2].agent_end().await, Some(0), "{}", fixture.machines[2].log());
    let workload = fixture.until_view(2, |workload| !workload["condition"].is_null()).await;
    assert_eq!(
        (&workload["condition"]["status"], &workload["condition"]["reason"]),
        (&"False".into(), &"Terminating".into()),
        "{workload:#}"
    );

    assert_eq!(fixture.machines[1].drain().await, 200, "{}", fixture.machines[1].log());
    fixture.until_endpoints(&[0]).await;
    fixture.until_view(1, |workload| workload["condition"]["reason"] == "Draining").await;
}

#[tokio::test]
async fn an_agent_that_reconnects_within_the_grace_period_keeps_its_endpoint() {
    let mut fixture = Fixture::start(
        "vm-reconnect",
        FixtureSettings { discovery: LONG.into(), ..FixtureSettings::default() },
    )
    .await;
    let session = |workload: &Value| workload["agent"]["session"].as_u64();
    let first = session(&fixture.until_view(1, |workload| session(workload).is_some()).await);
    let before = fixture.endpoint_changes().await;
    fixture.machines[1].kill_agent().await;
    fixture.until_view(1, |workload| workload["agent"]["connected"] == false).await;
    fixture.machines[1].start_agent().expect("the agent starts");
    fixture
        .until_view(1, |workload| session(workload) > first && workload["condition"]["status"] == "True")
        .await;
    // Envoy has processed all earlier responses once it has this change.
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[1]).await;
    fixture.assert_endpoint_changes(before, 1).await;
}

#[tokio::test]
async fn a_crashed_agent_is_removed_after_the_grace_period() {
    let mut fixture =
        Fixture::start("vm-crash", FixtureSettings { discovery: SHORT.into(), ..FixtureSettings::default() })
            .await;
    let begin = Instant::now();
    fixture.machines[1].kill_agent().await;
    fixture.until_endpoints(&[0]).await;
    assert!(begin.elapsed() >= GRACE, "an endpoint must stay during the grace period");
    // The entry was created by auto-registration, so it is deleted.
    fixture.until_view(1, Value::is_null).await;
    // The entry is created again.
    fixture.machines[1].start_agent().expect("the agent starts");
    fixture.until_endpoints(&[0, 1]).await;
}

/// When a machine is cut off from the network, its connection stays open on the discovery server,
/// and PINGs get no response. The missing heartbeat alone would be noticed only after minutes.
#[tokio::test]
async fn pings_detect_a_machine_without_network() {
    let fixture = Fixture::start(
        "vm-cut-off",
        FixtureSettings { discovery: SHORT.into(), ..FixtureSettings::default() },
    )
    .await;
    let begin = Instant::now();
    fixture.machines[1].signal(Signal::SIGSTOP);
    fixture.until_endpoints(&[0]).await;
    assert!(begin.elapsed() >= GRACE, "an endpoint must stay during the grace period");
    // The agent continues, finds its connection closed, and registers again.
    fixture.machines[1].signal(Signal::SIGCONT);
    fixture.until_endpoints(&[0, 1]).await;
}

/// Starts a machine whose entry an operator created, and stops its agent, which then keeps its
/// connection open without sending anything. Returns the reason of the condition Unknown.
async fn silent(name: &str, policy: &'static str) -> (Fixture, String) {
    let (folder, ip) = (envoy::folder(name), net::loopback());
    let documents = [entry("manual", &ip.to_string()), service()];
    let mut discovery = Discovery::new(&folder, &documents);
    discovery = discovery.flags(&SHORT).flags(&["--heartbeat", "1s", "--unknown-policy", policy]);
    discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    let mut machine = Machine::new(&folder, "m1", ip).await;
    machine.add_flags(&["--discovery", &discovery.plaintext().to_string(), "--discovery-plaintext"]);
    machine.add_flags(&["--workload-entry", "manual", "--namespace", NAMESPACE, "--service-account", GROUP]);
    let file = folder.join("group.yaml");
    std::fs::write(&file, kit::vm::documents::group(&kit::vm::documents::probe()).to_string())
        .expect("a writable folder");
    machine.add_flags(&["--workload-group", file.to_str().expect("a path")]);
    machine.start_agent().expect("the agent starts");
    let client =
        EnvoyClient::start(&folder, "client", net::loopback(), &Subscription::sotw(discovery.plaintext()))
            .await;
    let fixture = Fixture { folder, machines: vec![machine], client, discovery };
    fixture.until_endpoints(&[0]).await;
    fixture.machines[0].signal(Signal::SIGSTOP);
    let view = fixture.until_view(0, |workload| workload["condition"]["status"] == "Unknown").await;
    let reason = view["condition"]["reason"].as_str().unwrap_or_default().to_owned();
    (fixture, reason)
}

#[tokio::test]
async fn the_endpoint_of_a_silent_agent_is_removed() {
    let (fixture, reason) = silent("vm-silent", "remove").await;
    assert_eq!(reason, "AgentSilent");
    fixture.until_endpoints(&[]).await;
    // The agent continues.
    fixture.machines[0].signal(Signal::SIGCONT);
    fixture.until_endpoints(&[0]).await;
}

#[tokio::test]
async fn the_policy_keep_keeps_an_unknown_workload() {
    let (mut fixture, reason) = silent("vm-unknown", "keep").await;
    assert_eq!(reason, "AgentSilent");
    fixture.assert_endpoints_stable(&[0], Duration::from_secs(1)).await;
    // The agent is killed: the reason changes, the endpoint stays.
    fixture.machines[0].kill_agent().await;
    fixture.until_view(0, |workload| workload["condition"]["reason"] == "Disconnected").await;
    fixture.assert_endpoints_stable(&[0], Duration::from_secs(1)).await;
}
