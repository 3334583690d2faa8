//! Discovery crashes and comes back: with its store, and without.

use std::net::SocketAddr;
use std::time::Duration;

use kit::app::switched::Behaviour;
use kit::net;
use kit::vm::client::{Client, Way};
use kit::vm::scene::{Plan, SOON, Scene};
use kit::vm::traffic::Traffic;
use serde_json::Value;

/// The condition's status of each entry in the view, by address.
async fn statuses(scene: &Scene) -> Vec<(String, String)> {
    let view = scene.discovery.view().await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let workloads = view["workloads"].as_array().into_iter().flatten();
    workloads.map(|found| (text(&found["address"]), text(&found["condition"]["status"]))).collect()
}

/// Killed at once after an acknowledged report; Envoys lose nothing, and the first report after the start counts.
#[tokio::test]
async fn a_killed_discovery_comes_back_as_it_was() {
    let plan = Plan {
        machines: 3,
        discovery: vec!["--disconnect-grace", "2s", "--restart-grace", "60s"],
        ..Plan::default()
    };
    let mut scene = Scene::start("vm-kill", plan).await;
    scene.machines[1].application.behave(Behaviour::Failing);
    scene.until_endpoints(&[0, 2]).await;
    scene.until_view(1, |workload| workload["condition"]["status"] == "False").await;
    let before = statuses(&scene).await;
    let traffic = Traffic::start(scene.client.listener, Duration::from_millis(20));
    // Nobody of the agents comes back by itself: what is known now is what the store knew.
    for machine in &mut scene.machines {
        machine.kill_agent().await;
    }
    scene.discovery.kill().await;
    scene.stays(&[0, 2], Duration::from_millis(500)).await;
    scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(statuses(&scene).await, before);
    // Longer than the grace of a lost connection: after a restart that of the restart counts.
    scene.stays(&[0, 2], Duration::from_secs(4)).await;
    // A client that knows nothing yet gets the same.
    let fresh =
        Client::start(&scene.folder, "fresh", net::loopback(), &Way::sotw(scene.discovery.plaintext())).await;
    assert_eq!(fresh.endpoints().await, scene.client.endpoints().await);
    drop(fresh);
    // A report counts at once, in either direction.
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.machines[0].start_agent().expect("the agent starts");
    scene.until_endpoints(&[2]).await;
    scene.machines[1].application.behave(Behaviour::Serving);
    scene.machines[1].start_agent().expect("the agent starts");
    scene.until_endpoints(&[1, 2]).await;
    let tally = traffic.take();
    assert!(!tally.contains_key(&(503, String::new())), "Envoy always had an endpoint: {tally:?}");
}

/// An acknowledgement says that it is on the disk: whoever kills discovery upon it finds it there.
#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let mut scene = Scene::start("vm-acked", Plan { machines: 3, ..Plan::default() }).await;
    let mut healthy = [true; 3];
    for machine in [0, 2, 1, 0] {
        healthy[machine] = !healthy[machine];
        let behaviour = if healthy[machine] { Behaviour::Serving } else { Behaviour::Failing };
        scene.machines[machine].application.behave(behaviour);
        let state = if healthy[machine] { "Healthy" } else { "Unhealthy" };
        let acknowledged = async {
            while !is_acknowledged(&scene, machine, state).await {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, acknowledged).await.expect("an acknowledgement");
        scene.discovery.kill().await;
        // Nobody can say it again.
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

/// Was the agent in this state told that discovery has it?
async fn is_acknowledged(scene: &Scene, machine: usize, state: &str) -> bool {
    let view = scene.machines[machine].view().await;
    let last = view["stream"]["lastAcknowledgement"].as_str().unwrap_or_default();
    view["state"] == state && last.ends_with(&format!("/{}", view["generation"]))
}

/// Killed again and again while machines fail and recover: in the end Envoy has those that are well.
#[tokio::test]
async fn crashes_in_the_midst_of_changes_leave_the_truth() {
    let mut scene = Scene::start("vm-midst", Plan { machines: 3, ..Plan::default() }).await;
    let traffic = Traffic::start(scene.client.listener, Duration::from_millis(20));
    let mut number = 0x5eed_u32;
    for _ in 0..5 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The first stays well, so that somebody always answers.
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
    assert!(!tally.contains_key(&(503, String::new())), "Envoy always had an endpoint: {tally:?}");
}

/// The store is lost while Envoys and agents live: no set becomes smaller before everybody could say who he is.
async fn lost_store(name: &str, way: fn(SocketAddr) -> Way) {
    let plan = Plan {
        machines: 3,
        way,
        discovery: vec!["--disconnect-grace", "1s", "--restart-grace", "8s"],
        ..Plan::default()
    };
    let mut scene = Scene::start(name, plan).await;
    // The third is away for good, and nobody but Envoy remembers it.
    scene.machines[2].kill_agent().await;
    scene.discovery.kill().await;
    std::fs::remove_file(scene.discovery.store()).expect("there is a store");
    scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    scene.stays(&[0, 1, 2], Duration::from_secs(4)).await;
    let view = scene.discovery.view().await;
    assert_eq!(view["startupGrace"], true, "{view:#}");
    scene.until_endpoints(&[0, 1]).await;
    let connected = |workload: &Value| workload["condition"]["status"] == "True";
    scene.until_view(0, connected).await;
    scene.until_view(1, connected).await;
    assert_eq!(scene.discovery.view().await["startupGrace"], false);
}

#[tokio::test]
async fn a_lost_store_shrinks_no_set_by_state_of_the_world() {
    lost_store("vm-lost", Way::sotw).await;
}

#[tokio::test]
async fn a_lost_store_shrinks_no_set_incrementally() {
    lost_store("vm-lost-d", Way::delta).await;
}

#[tokio::test]
async fn discovery_ends_on_sigterm_and_agents_and_envoys_come_back_to_the_next() {
    let mut scene = Scene::start("vm-again", Plan::default()).await;
    assert_eq!(scene.discovery.stop().await, Some(0), "{}", scene.discovery.log());
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.stays(&[0, 1], Duration::from_secs(2)).await;
    scene.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    // What happened meanwhile is said as soon as somebody listens.
    scene.until_endpoints(&[1]).await;
    scene.machines[0].application.behave(Behaviour::Serving);
    scene.until_endpoints(&[0, 1]).await;
}
