//! Tests of the policy `--last-endpoint`: the last endpoint of a service is preserved if it becomes
//! unhealthy, but not if its agent terminates or drains.

use std::time::Duration;

use kit::app::switched::Behavior;
use kit::vm::documents::{group, probe, service};
use kit::vm::fixture::{Fixture, FixtureSettings};
use nix::sys::signal::Signal;
use serde_json::json;

#[tokio::test]
async fn the_last_endpoint_is_kept_until_its_agent_terminates() {
    let settings = FixtureSettings {
        discovery: vec!["--last-endpoint", "keep", "--disconnect-grace", "2s"],
        ..FixtureSettings::default()
    };
    let mut fixture = Fixture::start("vm-last", settings).await;
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[1]).await;
    // The condition's time decides which endpoint failed last. It is rounded to seconds, and within
    // the same second the name decides.
    fixture.until_view(0, |workload| workload["condition"]["status"] == "False").await;
    fixture.assert_endpoints_stable(&[1], Duration::from_secs(3)).await;
    fixture.machines[1].application.set_behavior(Behavior::Failing);
    let workload = fixture.until_view(1, |workload| workload["preservedAsLast"] == true).await;
    assert_eq!(workload["condition"]["status"], "False", "{workload:#}");
    // The agent of the preserved endpoint crashes: its entry would otherwise be deleted after the grace
    // period.
    fixture.machines[1].kill_agent().await;
    fixture.assert_endpoints_stable(&[1], Duration::from_secs(4)).await;
    fixture.machines[1].start_agent().expect("the agent starts");
    // An endpoint that is healthy again replaces the preserved one.
    fixture.machines[0].application.set_behavior(Behavior::Serving);
    fixture.until_endpoints(&[0]).await;
    // An endpoint whose agent terminates in order is never preserved.
    fixture.machines[0].signal(Signal::SIGTERM);
    fixture.until_endpoints(&[1]).await;
    fixture.machines[1].signal(Signal::SIGTERM);
    fixture.until_endpoints(&[]).await;
    assert_eq!(fixture.client.request().await.status, 503);
}

#[tokio::test]
async fn a_service_can_override_the_policy() {
    let mut kept = service();
    kept["metadata"]["annotations"] = json!({"app-health.io/last-endpoint": "keep"});
    let settings =
        FixtureSettings { machines: 1, documents: vec![group(&probe()), kept], ..FixtureSettings::default() };
    let fixture = Fixture::start("vm-last-own", settings).await;
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.until_view(0, |workload| workload["preservedAsLast"] == true).await;
    fixture.assert_endpoints_stable(&[0], Duration::from_secs(1)).await;
    fixture.discovery.configure(&service());
    fixture.until_endpoints(&[]).await;
}
