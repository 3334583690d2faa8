//! Tests of the policy `--last-endpoint`: the last endpoint of a service is kept if it becomes
//! unhealthy, but not if its agent terminates or drains.

use std::time::Duration;

use kit::app::switched::Behaviour;
use kit::vm::documents::{group, probe, service};
use kit::vm::scene::{Plan, Scene};
use nix::sys::signal::Signal;
use serde_json::json;

#[tokio::test]
async fn the_last_endpoint_stays_until_it_says_goodbye() {
    let plan =
        Plan { discovery: vec!["--last-endpoint", "keep", "--disconnect-grace", "2s"], ..Plan::default() };
    let mut scene = Scene::start("vm-last", plan).await;
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.until_endpoints(&[1]).await;
    // The condition's time decides which endpoint failed last. It is rounded to seconds, and within
    // the same second the name decides.
    scene.until_view(0, |workload| workload["condition"]["status"] == "False").await;
    scene.stays(&[1], Duration::from_secs(3)).await;
    scene.machines[1].application.behave(Behaviour::Failing);
    let workload = scene.until_view(1, |workload| workload["keptAsLast"] == true).await;
    assert_eq!(workload["condition"]["status"], "False", "{workload:#}");
    // The agent of the kept endpoint crashes: its entry would otherwise be deleted after the grace
    // period.
    scene.machines[1].kill_agent().await;
    scene.stays(&[1], Duration::from_secs(4)).await;
    scene.machines[1].start_agent().expect("the agent starts");
    // An endpoint that is healthy again replaces the kept one.
    scene.machines[0].application.behave(Behaviour::Serving);
    scene.until_endpoints(&[0]).await;
    // An endpoint whose agent terminates in order is never kept.
    scene.machines[0].signal(Signal::SIGTERM);
    scene.until_endpoints(&[1]).await;
    scene.machines[1].signal(Signal::SIGTERM);
    scene.until_endpoints(&[]).await;
    assert_eq!(scene.client.request().await.status, 503);
}

#[tokio::test]
async fn a_service_may_have_a_policy_of_its_own() {
    let mut kept = service();
    kept["metadata"]["annotations"] = json!({"app-health.io/last-endpoint": "keep"});
    let plan = Plan { machines: 1, documents: vec![group(&probe()), kept], ..Plan::default() };
    let scene = Scene::start("vm-last-own", plan).await;
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.until_view(0, |workload| workload["keptAsLast"] == true).await;
    scene.stays(&[0], Duration::from_secs(1)).await;
    scene.discovery.configure(&service());
    scene.until_endpoints(&[]).await;
}
