//! Tests of a discovery server that crashes and restarts, with and without its store.

use std::net::SocketAddr;
use std::time::Duration;

use kit::app::switched::Behavior;
use kit::net;
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::fixture::{Fixture, FixtureSettings};
use kit::vm::traffic::Traffic;
use kit::wait;
use serde_json::Value;

/// Returns address and condition status of each workload.
async fn statuses(fixture: &Fixture) -> Vec<(String, String)> {
    let view = fixture.discovery.view().await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let workloads = view["workloads"].as_array().into_iter().flatten();
    workloads.map(|found| (text(&found["address"]), text(&found["condition"]["status"]))).collect()
}

/// The server is killed right after it acknowledged a report. Envoy loses no endpoint, and the
/// first report after the restart takes effect.
#[tokio::test]
async fn a_killed_discovery_restores_its_state() {
    let settings = FixtureSettings {
        machines: 3,
        discovery: vec!["--disconnect-grace", "2s", "--restart-grace", "3600s"],
        ..FixtureSettings::default()
    };
    let mut fixture = Fixture::start("vm-kill", settings).await;
    fixture.machines[1].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[0, 2]).await;
    until_acknowledged(&fixture, &[0, 2]).await;
    let before = statuses(&fixture).await;
    let traffic = Traffic::start(fixture.client.listener, Duration::from_millis(20));
    // No agent can reconnect, so the restarted server knows only the content of its store.
    for machine in &mut fixture.machines {
        machine.kill_agent().await;
    }
    fixture.discovery.kill().await;
    fixture.assert_endpoints_stable(&[0, 2], Duration::from_millis(500)).await;
    fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(statuses(&fixture).await, before);
    // This is longer than `--disconnect-grace`: after a restart, `--restart-grace` applies.
    fixture.assert_endpoints_stable(&[0, 2], Duration::from_secs(4)).await;
    // A new client gets the same endpoints.
    let fresh = EnvoyClient::start(
        &fixture.folder,
        "fresh",
        net::loopback(),
        &Subscription::sotw(fixture.discovery.plaintext()),
    )
    .await;
    assert_eq!(fresh.endpoints().await, fixture.client.endpoints().await);
    drop(fresh);
    // A report takes effect at once, whether healthy or unhealthy.
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.machines[0].start_agent().expect("the agent starts");
    fixture.until_endpoints(&[2]).await;
    fixture.machines[1].application.set_behavior(Behavior::Serving);
    fixture.machines[1].start_agent().expect("the agent starts");
    fixture.until_endpoints(&[1, 2]).await;
    let tally = traffic.take();
    assert!(!tally.contains_key(&(503, String::new())), "Envoy must always have an endpoint: {tally:?}");
}

/// An acknowledged report is on the disk: if the server is killed right after the acknowledgement,
/// its store contains the report.
#[tokio::test]
async fn an_acknowledged_report_survives_a_kill() {
    let mut fixture =
        Fixture::start("vm-acked", FixtureSettings { machines: 3, ..FixtureSettings::default() }).await;
    let mut healthy = [true; 3];
    for machine in [0, 2, 1, 0] {
        healthy[machine] = !healthy[machine];
        let behavior = if healthy[machine] { Behavior::Serving } else { Behavior::Failing };
        fixture.machines[machine].application.set_behavior(behavior);
        let well: Vec<usize> = (0..3).filter(|machine| healthy[*machine]).collect();
        until_acknowledged(&fixture, &well).await;
        fixture.discovery.kill().await;
        // No agent can repeat the report.
        for machine in &mut fixture.machines {
            machine.kill_agent().await;
        }
        fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let view = fixture.discovery.workload(fixture.machines[machine].ip).await;
        let wanted = if healthy[machine] { "True" } else { "False" };
        assert_eq!(view["condition"]["status"], wanted, "{view:#}\n{}", fixture.state().await);
        for machine in &mut fixture.machines {
            machine.start_agent().expect("the agent starts");
        }
        fixture.until_endpoints(&well).await;
    }
}

/// Waits until the agents of the machines in `well` are healthy, all others unhealthy, and the server
/// has acknowledged all of that, so it is in the store.
async fn until_acknowledged(fixture: &Fixture, well: &[usize]) {
    for (number, machine) in fixture.machines.iter().enumerate() {
        let state = if well.contains(&number) { "Healthy" } else { "Unhealthy" };
        wait::until(&format!("an acknowledgement of {state}"), async || {
            let view = machine.view().await;
            let last = view["stream"]["lastAcknowledgement"].as_str().unwrap_or_default();
            view["state"] == state && last.ends_with(&format!("/{}", view["generation"]))
        })
        .await;
    }
}

/// The server is killed repeatedly while machines fail and recover. In the end Envoy has exactly
/// the healthy endpoints.
#[tokio::test]
async fn crashes_during_changes_lose_no_report() {
    let mut fixture =
        Fixture::start("vm-midst", FixtureSettings { machines: 3, ..FixtureSettings::default() }).await;
    let traffic = Traffic::start(fixture.client.listener, Duration::from_millis(20));
    let mut number = 0x5eed_u32;
    for _ in 0..5 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The first machine stays healthy, so that one endpoint always answers.
        for machine in [1, 2] {
            let behavior =
                if number >> (machine + 8) & 1 == 1 { Behavior::Failing } else { Behavior::Serving };
            fixture.machines[machine].application.set_behavior(behavior);
        }
        tokio::time::sleep(Duration::from_millis(u64::from(number >> 20) / 4)).await;
        fixture.discovery.kill().await;
        tokio::time::sleep(Duration::from_millis(u64::from(number >> 22))).await;
        fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    }
    let is_well = |machine: &usize| fixture.machines[*machine].application.behavior() == Behavior::Serving;
    let well: Vec<usize> = (0..3).filter(is_well).collect();
    // An agent may still have to report a failure from before the last crash.
    until_acknowledged(&fixture, &well).await;
    fixture.until_endpoints(&well).await;
    fixture.assert_endpoints_stable(&well, Duration::from_secs(1)).await;
    let tally = traffic.take();
    assert!(!tally.contains_key(&(503, String::new())), "Envoy must always have an endpoint: {tally:?}");
}

/// Loses the store while Envoy and the agents run, except for the agent of the third machine, whose
/// endpoint only Envoy still knows. Returns after both others have registered again.
async fn lost_store(
    name: &str,
    subscription: fn(SocketAddr) -> Subscription,
    grace: &'static str,
) -> (Fixture, u64) {
    let discovery = vec!["--disconnect-grace", "1s", "--restart-grace", grace];
    let settings = FixtureSettings { machines: 3, subscription, discovery, ..FixtureSettings::default() };
    let mut fixture = Fixture::start(name, settings).await;
    let before = fixture.endpoint_changes().await;
    fixture.discovery.kill().await;
    fixture.machines[2].kill_agent().await;
    std::fs::remove_file(fixture.discovery.store()).expect("the store exists");
    fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    for machine in [0, 1] {
        fixture.until_view(machine, |workload| workload["condition"]["status"] == "True").await;
    }
    (fixture, before)
}

/// No endpoint is removed before all agents had time to register again.
async fn lost_store_removes_nothing(name: &str, subscription: fn(SocketAddr) -> Subscription) {
    let (fixture, before) = lost_store(name, subscription, "3600s").await;
    fixture.assert_endpoints_stable(&[0, 1, 2], Duration::from_secs(1)).await;
    fixture.assert_endpoint_changes(before, 0).await;
    let view = fixture.discovery.view().await;
    assert_eq!(view["startupGrace"], true, "{view:#}");
}

async fn lost_store_settles(name: &str, subscription: fn(SocketAddr) -> Subscription) {
    let (fixture, _) = lost_store(name, subscription, "2s").await;
    fixture.until_endpoints(&[0, 1]).await;
    wait::until("the end of the startup grace period", async || {
        fixture.discovery.view().await["startupGrace"] == false
    })
    .await;
}

#[tokio::test]
async fn a_lost_store_removes_no_endpoint_sotw() {
    lost_store_removes_nothing("vm-lost", Subscription::sotw).await;
}

#[tokio::test]
async fn a_lost_store_removes_no_endpoint_delta() {
    lost_store_removes_nothing("vm-lost-d", Subscription::delta).await;
}

#[tokio::test]
async fn endpoints_without_an_agent_are_removed_after_the_startup_grace_period_sotw() {
    lost_store_settles("vm-settled", Subscription::sotw).await;
}

#[tokio::test]
async fn endpoints_without_an_agent_are_removed_after_the_startup_grace_period_delta() {
    lost_store_settles("vm-settled-d", Subscription::delta).await;
}

#[tokio::test]
async fn agents_and_envoys_reconnect_after_sigterm() {
    let mut fixture = Fixture::start("vm-again", FixtureSettings::default()).await;
    assert_eq!(fixture.discovery.stop().await, Some(0), "{}", fixture.discovery.log());
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.assert_endpoints_stable(&[0, 1], Duration::from_secs(2)).await;
    fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    // The agent reports the change as soon as it is connected again.
    fixture.until_endpoints(&[1]).await;
    fixture.machines[0].application.set_behavior(Behavior::Serving);
    fixture.until_endpoints(&[0, 1]).await;
}
