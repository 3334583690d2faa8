//! Tests of kubelet's probes while other clients probe as often as they can, through a real Envoy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use envoy_bootstrap::bootstrap::Bootstrap;
use kit::app::counted::{CountedApp, Habit};
use kit::envoy::Version;
use kit::load::{ask, kubelet_request};
use kit::net;
use kit::pod::{Pod, with_long_timeouts};
use kit::wait;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const PATH: &str = "/app-health/app/readyz";
/// Requests of each hostile client at the same time.
const CONCURRENCY: u8 = 4;
/// The pause of a hostile client between requests.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends requests from an address until `hostile` is dropped.
fn attack(hostile: &mut JoinSet<()>, client: u8, listener: SocketAddr, pause: Duration) {
    for _ in 0..CONCURRENCY {
        hostile.spawn(async move {
            let source = IpAddr::V4(Ipv4Addr::new(127, 77, client, 1));
            loop {
                ask(Some(source), listener, &kubelet_request(listener, PATH)).await;
                sleep(pause).await;
            }
        });
    }
}

/// Probes 20 times from kubelet's address while this many others attack. Each of them is answered by
/// the application.
async fn check(name: &str, clients: u8, habit: Habit) {
    let ip = net::loopback();
    let app = CountedApp::start(ip, habit);
    let table = json!({PATH: {"httpGet": {"port": app.port()}}});
    let pod = Pod::start(&format!("attack-{name}-{clients}"), ip, &table).await;
    let listener = pod.listener;
    let mut hostile = JoinSet::new();
    for client in 0..clients {
        attack(&mut hostile, client, listener, PAUSE);
    }
    // The application is busy with the hostile clients before kubelet probes.
    let requests = u64::from(clients);
    wait::until("the attack has begun", async || app.requests() >= requests).await;
    let kubelet = net::loopback();
    for probe in 0..20 {
        let answer = ask(Some(kubelet), listener, &kubelet_request(listener, PATH)).await;
        assert_eq!(answer.status, 200, "{clients} hostile clients, probe {probe}: {answer:?}");
    }
    hostile.shutdown().await;
    pod.envoy.stop().await;
}

#[tokio::test]
async fn kubelets_probes_of_a_slow_application_succeed() {
    for clients in [1, 10, 100] {
        check("slow", clients, Habit::AnswerAfter(Duration::from_millis(300), OK.to_vec())).await;
    }
}

#[tokio::test]
async fn kubelets_probes_of_a_fast_application_succeed() {
    for clients in [1, 10, 100] {
        check("fast", clients, Habit::Answer(OK.to_vec())).await;
    }
}

/// So many addresses attack that they have all places for probes in flight.
#[tokio::test]
async fn the_node_has_places_that_no_other_client_can_take() {
    let ip = net::loopback();
    let app = CountedApp::start(ip, Habit::AnswerAfter(Duration::from_secs(2), OK.to_vec()));
    let table = with_long_timeouts(json!({PATH: {"httpGet": {"port": app.port()}}}));
    let node = net::loopback();
    let bootstrap = Bootstrap { node: vec![node], ..Pod::bootstrap("attack-places", ip, &table) };
    let pod = Pod::with("attack-places", Version::Newest, &bootstrap).await;
    let listener = pod.listener;
    let mut hostile = JoinSet::new();
    for client in 0..150 {
        attack(&mut hostile, client, listener, PAUSE * 10);
    }
    let request = kubelet_request(listener, PATH);
    let stranger = net::loopback();
    wait::until("others have no place", async || ask(Some(stranger), listener, &request).await.status == 429)
        .await;
    for probe in 0..5 {
        let answer = ask(Some(node), listener, &request).await;
        assert_eq!(answer.status, 200, "probe {probe}: {answer:?}");
    }
    hostile.shutdown().await;
    pod.envoy.stop().await;
}
