//! A test with five hundred agents and one server that is killed: `./justw bench vm-health` with
//! smaller numbers.

use std::time::Duration;

use kit::app::tls;
use kit::vm::fleet::{Crowd, Size};
use kit::vm::wait::TIMEOUT;
use tokio::time::sleep;

const AGENTS: u32 = 500;
/// The number of times that a tenth of the agents change their health.
const FLAPS: u32 = 6;
/// The time between two changes.
const PAUSE: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_agents_come_back_to_a_server_that_was_killed_and_no_endpoint_is_lost() {
    tls::install_provider();
    let size = Size { agents: AGENTS, services: 10, arrivals: 250, heartbeat: Duration::from_secs(5) };
    let mut crowd = Crowd::start("storm", size).await.expect("all register");

    crowd.discovery.kill().await;
    let killed = crowd.fleet.tally.now();
    crowd.discovery.start().await.expect("the discovery server restarts");
    crowd.until_registered(killed).await.expect("all agents register again");
    crowd.until_exact(TIMEOUT).await.expect("Envoy has every endpoint");
    assert!(crowd.observer.sets().shrinks.is_empty(), "{:?}", crowd.observer.sets().shrinks);

    // The last change leaves every second one of them unhealthy.
    let flapping: Vec<u32> = (0..AGENTS).step_by(10).collect();
    for flap in 0..=FLAPS {
        for (position, agent) in flapping.iter().enumerate() {
            crowd.fleet.behave(*agent, (position + flap as usize).is_multiple_of(2));
        }
        sleep(PAUSE).await;
    }
    crowd.until_exact(TIMEOUT).await.expect("the endpoints are those of the healthy ones");
    assert_eq!(crowd.observer.sets().total(), (AGENTS - AGENTS / 20) as usize);
}
