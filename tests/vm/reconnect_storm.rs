//! A test with five hundred agents and one server that is killed: `./justw bench vm-health` with
//! smaller numbers.

use std::time::Duration;

use kit::app::tls;
use kit::net;
use kit::vm::fleet::{LoadSize, LoadTest};
use kit::vm::stranger::Stranger;
use kit::wait;
use tokio::time::sleep;

const AGENTS: u32 = 500;
/// The number of times that a tenth of the agents change their health.
const FLAPS: u32 = 6;
/// The time between two changes.
const PAUSE: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_agents_reconnect_to_a_killed_server_and_no_endpoint_is_lost() {
    tls::install_provider();
    let size = LoadSize { agents: AGENTS, services: 10, arrivals: 250, heartbeat: Duration::from_secs(5) };
    let mut load = LoadTest::start("storm", size).await.expect("all register");

    load.discovery.kill().await;
    let killed = load.fleet.stats.now();
    load.discovery.start().await.expect("the discovery server restarts");
    load.until_registered(killed).await.expect("all agents register again");
    load.until_endpoints_match(wait::timeout()).await.expect("Envoy has every endpoint");
    assert!(load.eds_client.state().removals.is_empty(), "{:?}", load.eds_client.state().removals);

    // The last change leaves every second one of them unhealthy.
    let flapping: Vec<u32> = (0..AGENTS).step_by(10).collect();
    for flap in 0..=FLAPS {
        for (position, agent) in flapping.iter().enumerate() {
            load.fleet.set_healthy(*agent, (position + flap as usize).is_multiple_of(2));
        }
        sleep(PAUSE).await;
    }
    load.until_endpoints_match(wait::timeout()).await.expect("the endpoints are those of the healthy ones");
    assert_eq!(load.eds_client.state().total(), (AGENTS - AGENTS / 20) as usize);
}

/// The stranger has more handshakes in progress than discovery accepts in total.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_reconnect_while_a_stranger_begins_a_hundred_handshakes_per_second() {
    tls::install_provider();
    let size = LoadSize { agents: 200, services: 10, arrivals: 200, heartbeat: Duration::from_secs(5) };
    let mut load = LoadTest::start("stranger", size).await.expect("all register");

    let stranger = Stranger::start(net::loopback(), load.discovery.secure(), 100, &load.settings.tls[0]);
    load.discovery.kill().await;
    let killed = load.fleet.stats.now();
    load.discovery.start().await.expect("the discovery server restarts");
    let registered = load.until_registered(killed).await;
    registered.expect("all agents register again");
    load.until_endpoints_match(wait::timeout()).await.expect("Envoy has every endpoint");
    assert!(load.eds_client.state().removals.is_empty(), "{:?}", load.eds_client.state().removals);

    assert!(stranger.is_running());
    let metrics = load.discovery.metrics().await;
    assert!(metrics.contains("app_health_discovery_refused_total{reason=\"limit\"}"), "{metrics}");
}
