//! Tests of the endpoints and clusters in Envoy: endpoints are removed and added again, a cluster
//! has no endpoints, and clusters change.

use std::net::SocketAddr;
use std::time::Duration;

use kit::app::switched::Behaviour;
use kit::envoy::Version;
use kit::vm::client::Way;
use kit::vm::documents::{CLUSTER, group, probe, service};
use kit::vm::scene::{Plan, Scene};
use kit::vm::traffic::Traffic;
use kit::vm::wait;
use serde_json::json;

/// Long enough for an unwanted push to arrive.
const A_WHILE: Duration = Duration::from_millis(700);
/// The number of requests through a changed cluster.
const REQUESTS: u64 = 100;

fn own_eds_cluster(discovery: SocketAddr) -> Way {
    Way { dynamic: false, ..Way::sotw(discovery) }
}

fn oldest(discovery: SocketAddr) -> Way {
    Way { version: Version::Floor, ..Way::delta(discovery) }
}

/// One machine after the other fails and recovers. While all of them fail, Envoy sends no request
/// to any.
async fn come_and_go(name: &str, way: fn(SocketAddr) -> Way, agents: Vec<&'static str>) {
    let scene = Scene::start(name, Plan { way, agents, ..Plan::default() }).await;
    let [first, second] = [&scene.machines[0].application, &scene.machines[1].application];
    assert_eq!(scene.client.request().await.status, 200);

    second.behave(Behaviour::Failing);
    scene.until_endpoints(&[0]).await;
    let asked = second.requests();
    for _ in 0..20 {
        assert_eq!(scene.client.request().await.status, 200);
    }
    assert_eq!(second.requests(), asked, "the unhealthy machine must get no request");

    first.behave(Behaviour::Hanging);
    let mut impatient = probe();
    impatient["timeoutSeconds"] = json!(1);
    scene.discovery.configure(&group(&impatient));
    scene.until_endpoints(&[]).await;
    scene.discovery.configure(&group(&probe()));
    let asked = (first.requests(), second.requests());
    for _ in 0..20 {
        let answer = scene.client.request().await;
        assert_eq!((answer.status, answer.text().trim()), (503, "no healthy upstream"));
    }
    assert_eq!(
        (first.requests(), second.requests()),
        asked,
        "there must be no panic routing to unhealthy machines"
    );
    assert_eq!(scene.client.cluster_stat("lb_healthy_panic").await, Some(0));

    second.behave(Behaviour::Serving);
    scene.until_endpoints(&[1]).await;
    assert_eq!(scene.client.request().await.status, 200);
    first.behave(Behaviour::Serving);
    scene.until_endpoints(&[0, 1]).await;
    assert_eq!(scene.client.cluster_stat("update_rejected").await, Some(0));
}

#[tokio::test]
async fn endpoints_come_and_go_by_state_of_the_world() {
    come_and_go("vm-sotw", Way::sotw, vec!["--xds", "sotw"]).await;
}

#[tokio::test]
async fn endpoints_come_and_go_incrementally() {
    come_and_go("vm-delta", Way::delta, vec!["--xds", "delta"]).await;
}

#[tokio::test]
async fn endpoints_come_and_go_in_the_oldest_envoy() {
    come_and_go("vm-floor", oldest, Vec::new()).await;
}

#[tokio::test]
async fn endpoints_come_and_go_in_a_cluster_of_the_users_own() {
    come_and_go("vm-own", own_eds_cluster, Vec::new()).await;
}

/// Envoy warms a changed cluster before it replaces the old one, so no request finds a cluster
/// without endpoints.
async fn changes(name: &str, way: fn(SocketAddr) -> Way) {
    let scene = Scene::start(name, Plan { way, ..Plan::default() }).await;
    let traffic = Traffic::start(scene.client.listener, Duration::from_millis(5));
    let mut service = service();
    for protocol in ["HTTP2", "HTTP", "GRPC", "HTTP"] {
        let updates = scene.client.envoy.stat("cluster_manager.cluster_modified").await.expect("a counter");
        service["spec"]["ports"][0]["protocol"] = json!(protocol);
        scene.discovery.configure(&service);
        wait::until(&format!("the cluster with {protocol}"), async || {
            let envoy = &scene.client.envoy;
            envoy.stat("cluster_manager.cluster_modified").await > Some(updates)
                && envoy.stat("cluster_manager.warming_clusters").await == Some(0)
        })
        .await;
        let before = traffic.responses();
        wait::until("requests through the new cluster", async || traffic.responses() >= before + REQUESTS)
            .await;
        scene.until_endpoints(&[0, 1]).await;
        let tally = traffic.take();
        let served: u64 =
            tally.iter().filter(|((status, _), _)| *status == 200).map(|(_, count)| count).sum();
        let all: u64 = tally.values().sum();
        assert!(served > 0 && served == all, "{protocol}: {tally:?}");
    }
}

#[tokio::test]
async fn a_cluster_that_changes_is_warmed_by_state_of_the_world() {
    changes("vm-warm", Way::sotw).await;
}

#[tokio::test]
async fn a_cluster_that_changes_is_warmed_incrementally() {
    changes("vm-warm-d", Way::delta).await;
}

#[tokio::test]
async fn a_service_that_is_removed_leaves_and_one_that_is_added_comes() {
    let scene = Scene::start("vm-services", Plan::default()).await;
    let mut other = service();
    other["metadata"]["name"] = json!("other");
    other["spec"]["hosts"] = json!(["other.shop.example.com"]);
    scene.discovery.configure(&other);
    let cluster = "outbound|8080||other.shop.example.com";
    until_cluster(&scene, cluster, true).await;
    std::fs::remove_file(scene.discovery.folder.join("config/ServiceEntry-other.yaml"))
        .expect("the document exists");
    until_cluster(&scene, cluster, false).await;
    assert!(has_cluster(&scene, CLUSTER).await, "the other service stays");
    scene.stays(&[0, 1], A_WHILE).await;
}

async fn has_cluster(scene: &Scene, cluster: &str) -> bool {
    let text = scene.client.envoy.admin("/clusters").await.unwrap_or_default();
    text.lines().any(|line| line.starts_with(&format!("{cluster}::")))
}

async fn until_cluster(scene: &Scene, cluster: &str, wanted: bool) {
    let what = format!("{cluster} to be {}", if wanted { "present" } else { "removed" });
    wait::until(&what, async || has_cluster(scene, cluster).await == wanted).await;
}

#[tokio::test]
async fn a_group_without_a_probe_is_served_unasked() {
    let documents = vec![group(&json!(null)), service()];
    let scene = Scene::start("vm-no-probe", Plan { documents, machines: 1, ..Plan::default() }).await;
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.stays(&[0], A_WHILE).await;
    // A probe that the group gets later takes effect, although the entry was created without one.
    scene.discovery.configure(&group(&probe()));
    scene.until_endpoints(&[]).await;
}
