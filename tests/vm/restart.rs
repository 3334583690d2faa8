//! Tests of a discovery server that crashes and restarts, with and without its store.

use std::net::SocketAddr;
use std::time::Duration;

use kit::app::switched::Behaviour;
use kit::net;
use kit::vm::client::{Client, Way};
use kit::vm::scene::{Plan, Scene};
use kit::vm::traffic::Traffic;
use kit::vm::wait;
use serde_json::Value;

/// Returns address and condition status of each workload.
async fn statuses(scene: &Scene) -> Vec<(String, String)> {
    let view = scene.discovery.view().await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let workloads = view["workloads"].as_array().into_iter().flatten();
    workloads.map(|found| (text(&found["address"]), text(&found["condition"]["status"]))).collect()
}

/// The server is killed right after it acknowledged a report. Envoy loses no endpoint, and the
/// first report after the restart takes effect.
#[tokio::test]
async fn a_killed_discovery_comes_back_as_it_was() {
    let plan = Plan {
        machines: 3,
        discovery: vec!["--disconnect-grace", "2s", "--restart-grace", "3600s"],
        ..Plan::default()
    };
    let mut scene = Scene::start("vm-kill", plan).await;
    scene.machines[1].application.behave(Behaviour::Failing);
    scene.until_endpoints(&[0, 2]).await;
    scene.until_view(1, |workload| workload["condition"]["status"] == "False").await;
    let before = statuses(&scene).await;
    let traffic = Traffic::start(scene.client.listener, Duration::from_millis(20));
    // No agent can reconnect, so the restarted server knows only the content of its store.
    for machine in &mut scene.machines {
        machine.kill_agent().await;
    }
    scene.discovery.kill().await;
    scene.stays(&[0, 2], Duration::from_millis(500)).await;
    scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(statuses(&scene).await, before);
    // This is longer than `--disconnect-grace`: after a restart, `--restart-grace` applies.
    scene.stays(&[0, 2], Duration::from_secs(4)).await;
    // A new client gets the same endpoints.
    let fresh =
        Client::start(&scene.folder, "fresh", net::loopback(), &Way::sotw(scene.discovery.plaintext())).await;
    assert_eq!(fresh.endpoints().await, scene.client.endpoints().await);
    drop(fresh);
    // A report takes effect at once, whether healthy or unhealthy.
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.machines[0].start_agent().expect("the agent starts");
    scene.until_endpoints(&[2]).await;
    scene.machines[1].application.behave(Behaviour::Serving);
    scene.machines[1].start_agent().expect("the agent starts");
    scene.until_endpoints(&[1, 2]).await;
    let tally = traffic.take();
    assert!(!tally.contains_key(&(503, String::new())), "Envoy must always have an endpoint: {tally:?}");
}

/// An acknowledged report is on the disk: if the server is killed right after the acknowledgement,
/// its store contains the report.
#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let mut scene = Scene::start("vm-acked", Plan { machines: 3, ..Plan::default() }).await;
    let mut healthy = [true; 3];
    for machine in [0, 2, 1, 0] {
        healthy[machine] = !healthy[machine];
        let behaviour = if healthy[machine] { Behaviour::Serving } else { Behaviour::Failing };
        scene.machines[machine].application.behave(behaviour);
        let state = if healthy[machine] { "Healthy" } else { "Unhealthy" };
        wait::until("an acknowledgement", async || is_acknowledged(&scene, machine, state).await).await;
        scene.discovery.kill().await;
        // No agent can repeat the report.
        for machine in &mut scene.machines {
            machine.kill_agent().await;
        }
        scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let view = scene.discovery.workload(scene.machines[machine].ip).await;
        let wanted = if healthy[machine] { "True" } else { "False" };
        assert_eq!(view["condition"]["status"], wanted, "{view:#}\n{}", scene.state().await);
        for machine in &mut scene.machines {
            machine.start_agent().expect("the agent starts");
        }
        let served: Vec<usize> = (0..3).filter(|machine| healthy[*machine]).collect();
        scene.until_endpoints(&served).await;
    }
}

/// Returns whether the agent is in this state and the server has acknowledged that.
async fn is_acknowledged(scene: &Scene, machine: usize, state: &str) -> bool {
    let view = scene.machines[machine].view().await;
    let last = view["stream"]["lastAcknowledgement"].as_str().unwrap_or_default();
    view["state"] == state && last.ends_with(&format!("/{}", view["generation"]))
}

/// The server is killed repeatedly while machines fail and recover. In the end Envoy has exactly
/// the healthy endpoints.
#[tokio::test]
async fn crashes_in_the_midst_of_changes_leave_the_truth() {
    let mut scene = Scene::start("vm-midst", Plan { machines: 3, ..Plan::default() }).await;
    let traffic = Traffic::start(scene.client.listener, Duration::from_millis(20));
    let mut number = 0x5eed_u32;
    for _ in 0..5 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The first machine stays healthy, so that one endpoint always answers.
        for machine in [1, 2] {
            let behaviour =
                if number >> (machine + 8) & 1 == 1 { Behaviour::Failing } else { Behaviour::Serving };
            scene.machines[machine].application.behave(behaviour);
        }
        tokio::time::sleep(Duration::from_millis(u64::from(number >> 20) / 4)).await;
        scene.discovery.kill().await;
        tokio::time::sleep(Duration::from_millis(u64::from(number >> 22))).await;
        scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    }
    let is_well = |machine: &usize| scene.machines[*machine].application.behaviour() == Behaviour::Serving;
    let well: Vec<usize> = (0..3).filter(is_well).collect();
    scene.until_endpoints(&well).await;
    scene.stays(&well, Duration::from_secs(1)).await;
    let tally = traffic.take();
    assert!(!tally.contains_key(&(503, String::new())), "Envoy must always have an endpoint: {tally:?}");
}

/// Loses the store while Envoy and the agents run, except for the agent of the third machine, whose
/// endpoint only Envoy still knows. Returns after both others have registered again.
async fn lost_store(name: &str, way: fn(SocketAddr) -> Way, grace: &'static str) -> (Scene, u64) {
    let discovery = vec!["--disconnect-grace", "1s", "--restart-grace", grace];
    let plan = Plan { machines: 3, way, discovery, ..Plan::default() };
    let mut scene = Scene::start(name, plan).await;
    let before = scene.changes().await;
    scene.discovery.kill().await;
    scene.machines[2].kill_agent().await;
    std::fs::remove_file(scene.discovery.store()).expect("the store exists");
    scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    for machine in [0, 1] {
        scene.until_view(machine, |workload| workload["condition"]["status"] == "True").await;
    }
    (scene, before)
}

/// No endpoint is removed before all agents had time to register again.
async fn lost_store_removes_nothing(name: &str, way: fn(SocketAddr) -> Way) {
    let (scene, before) = lost_store(name, way, "3600s").await;
    scene.stays(&[0, 1, 2], Duration::from_secs(1)).await;
    scene.has_changed_only(before, 0).await;
    let view = scene.discovery.view().await;
    assert_eq!(view["startupGrace"], true, "{view:#}");
}

async fn lost_store_settles(name: &str, way: fn(SocketAddr) -> Way) {
    let (scene, _) = lost_store(name, way, "2s").await;
    scene.until_endpoints(&[0, 1]).await;
    wait::until("the end of the startup grace period", async || {
        scene.discovery.view().await["startupGrace"] == false
    })
    .await;
}

#[tokio::test]
async fn a_lost_store_removes_no_endpoint_sotw() {
    lost_store_removes_nothing("vm-lost", Way::sotw).await;
}

#[tokio::test]
async fn a_lost_store_removes_no_endpoint_delta() {
    lost_store_removes_nothing("vm-lost-d", Way::delta).await;
}

#[tokio::test]
async fn endpoints_without_an_agent_are_removed_after_the_startup_grace_period_sotw() {
    lost_store_settles("vm-settled", Way::sotw).await;
}

#[tokio::test]
async fn endpoints_without_an_agent_are_removed_after_the_startup_grace_period_delta() {
    lost_store_settles("vm-settled-d", Way::delta).await;
}

#[tokio::test]
async fn discovery_ends_on_sigterm_and_agents_and_envoys_come_back_to_the_next() {
    let mut scene = Scene::start("vm-again", Plan::default()).await;
    assert_eq!(scene.discovery.stop().await, Some(0), "{}", scene.discovery.log());
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.stays(&[0, 1], Duration::from_secs(2)).await;
    scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    // The agent reports the change as soon as it is connected again.
    scene.until_endpoints(&[1]).await;
    scene.machines[0].application.behave(Behaviour::Serving);
    scene.until_endpoints(&[0, 1]).await;
}
