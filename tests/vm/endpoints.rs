//! Tests of the endpoints and clusters in Envoy: endpoints are removed and added again, a cluster
//! has no endpoints, and clusters change.

use std::net::SocketAddr;
use std::time::Duration;

use kit::app::switched::Behavior;
use kit::envoy::{self, Version};
use kit::net;
use kit::vm::discovery::Discovery;
use kit::vm::documents::{CLUSTER, group, probe, service};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::fixture::{Fixture, FixtureSettings};
use kit::vm::traffic::Traffic;
use kit::wait;
use serde_json::json;

/// Long enough for an unwanted push to arrive.
const QUIET_PERIOD: Duration = Duration::from_millis(700);
/// The number of requests through a changed cluster.
const REQUESTS: u64 = 100;

fn static_cluster(discovery: SocketAddr) -> Subscription {
    Subscription { dynamic: false, ..Subscription::sotw(discovery) }
}

fn oldest(discovery: SocketAddr) -> Subscription {
    Subscription { version: Version::Floor, ..Subscription::delta(discovery) }
}

/// One machine after the other fails and recovers. While all of them fail, Envoy sends no request
/// to any.
async fn remove_and_add_endpoints(
    name: &str,
    subscription: fn(SocketAddr) -> Subscription,
    agents: Vec<&'static str>,
) {
    let fixture =
        Fixture::start(name, FixtureSettings { subscription, agents, ..FixtureSettings::default() }).await;
    let [first, second] = [&fixture.machines[0].application, &fixture.machines[1].application];
    assert_eq!(fixture.client.request().await.status, 200);

    second.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[0]).await;
    let asked = second.requests();
    for _ in 0..20 {
        assert_eq!(fixture.client.request().await.status, 200);
    }
    assert_eq!(second.requests(), asked, "the unhealthy machine must get no request");

    first.set_behavior(Behavior::Hanging);
    let mut impatient = probe();
    impatient["timeoutSeconds"] = json!(1);
    fixture.discovery.configure(&group(&impatient));
    fixture.until_endpoints(&[]).await;
    fixture.discovery.configure(&group(&probe()));
    let asked = (first.requests(), second.requests());
    for _ in 0..20 {
        let answer = fixture.client.request().await;
        assert_eq!((answer.status, answer.text().trim()), (503, "no healthy upstream"));
    }
    assert_eq!(
        (first.requests(), second.requests()),
        asked,
        "there must be no panic routing to unhealthy machines"
    );
    assert_eq!(fixture.client.cluster_stat("lb_healthy_panic").await, Some(0));

    second.set_behavior(Behavior::Serving);
    fixture.until_endpoints(&[1]).await;
    assert_eq!(fixture.client.request().await.status, 200);
    first.set_behavior(Behavior::Serving);
    fixture.until_endpoints(&[0, 1]).await;
    assert_eq!(fixture.client.cluster_stat("update_rejected").await, Some(0));
}

#[tokio::test]
async fn endpoints_are_removed_and_added_sotw() {
    remove_and_add_endpoints("vm-sotw", Subscription::sotw, vec!["--xds", "sotw"]).await;
}

#[tokio::test]
async fn endpoints_are_removed_and_added_delta() {
    remove_and_add_endpoints("vm-delta", Subscription::delta, vec!["--xds", "delta"]).await;
}

#[tokio::test]
async fn endpoints_are_removed_and_added_in_the_oldest_envoy() {
    remove_and_add_endpoints("vm-floor", oldest, Vec::new()).await;
}

#[tokio::test]
async fn endpoints_are_removed_and_added_in_a_static_cluster() {
    remove_and_add_endpoints("vm-own", static_cluster, Vec::new()).await;
}

/// Envoy warms a changed cluster before it replaces the old one, so no request finds a cluster
/// without endpoints.
async fn changes(name: &str, subscription: fn(SocketAddr) -> Subscription) {
    let fixture = Fixture::start(name, FixtureSettings { subscription, ..FixtureSettings::default() }).await;
    let traffic = Traffic::start(fixture.client.listener, Duration::from_millis(5));
    let mut service = service();
    for protocol in ["HTTP2", "HTTP", "GRPC", "HTTP"] {
        let updates = fixture.client.envoy.stat("cluster_manager.cluster_modified").await.expect("a counter");
        service["spec"]["ports"][0]["protocol"] = json!(protocol);
        fixture.discovery.configure(&service);
        wait::until(&format!("the cluster with {protocol}"), async || {
            let envoy = &fixture.client.envoy;
            envoy.stat("cluster_manager.cluster_modified").await > Some(updates)
                && envoy.stat("cluster_manager.warming_clusters").await == Some(0)
        })
        .await;
        let before = traffic.responses();
        wait::until("requests through the new cluster", async || traffic.responses() >= before + REQUESTS)
            .await;
        fixture.until_endpoints(&[0, 1]).await;
        let tally = traffic.take();
        let served: u64 =
            tally.iter().filter(|((status, _), _)| *status == 200).map(|(_, count)| count).sum();
        let all: u64 = tally.values().sum();
        assert!(served > 0 && served == all, "{protocol}: {tally:?}");
    }
}

#[tokio::test]
async fn a_changed_cluster_is_warmed_sotw() {
    changes("vm-warm", Subscription::sotw).await;
}

#[tokio::test]
async fn a_changed_cluster_is_warmed_delta() {
    changes("vm-warm-d", Subscription::delta).await;
}

#[tokio::test]
async fn services_can_be_added_and_removed() {
    let fixture = Fixture::start("vm-services", FixtureSettings::default()).await;
    let mut other = service();
    other["metadata"]["name"] = json!("other");
    other["spec"]["hosts"] = json!(["other.shop.example.com"]);
    fixture.discovery.configure(&other);
    let cluster = "outbound|8080||other.shop.example.com";
    until_cluster(&fixture, cluster, true).await;
    std::fs::remove_file(fixture.discovery.folder.join("config/ServiceEntry-other.yaml"))
        .expect("the document exists");
    until_cluster(&fixture, cluster, false).await;
    assert!(has_cluster(&fixture, CLUSTER).await, "the other service stays");
    fixture.assert_endpoints_stable(&[0, 1], QUIET_PERIOD).await;
}

async fn has_cluster(fixture: &Fixture, cluster: &str) -> bool {
    let text = fixture.client.envoy.admin("/clusters").await.unwrap_or_default();
    text.lines().any(|line| line.starts_with(&format!("{cluster}::")))
}

async fn until_cluster(fixture: &Fixture, cluster: &str, wanted: bool) {
    let what = format!("{cluster} to be {}", if wanted { "present" } else { "removed" });
    wait::until(&what, async || has_cluster(fixture, cluster).await == wanted).await;
}

#[tokio::test]
async fn a_group_without_a_probe_is_always_served() {
    let documents = vec![group(&json!(null)), service()];
    let fixture = Fixture::start(
        "vm-no-probe",
        FixtureSettings { documents, machines: 1, ..FixtureSettings::default() },
    )
    .await;
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.assert_endpoints_stable(&[0], QUIET_PERIOD).await;
    // A probe that the group gets later takes effect, although the entry was created without one.
    fixture.discovery.configure(&group(&probe()));
    fixture.until_endpoints(&[]).await;
}

/// Discovery has no listeners, and Envoy is not ready before it knows that.
#[tokio::test]
async fn an_envoy_that_waits_for_listeners_becomes_ready() {
    for (name, subscription) in [
        ("vm-lds-sotw", Subscription::sotw as fn(SocketAddr) -> Subscription),
        ("vm-lds-delta", Subscription::delta),
    ] {
        let folder = envoy::folder(name);
        let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let subscription = Subscription { listeners: true, ..subscription(discovery.plaintext()) };
        EnvoyClient::start(&folder, "client", net::loopback(), &subscription).await;
    }
}
