//! Tests that machines stay endpoints when all their agents become silent at once, with real agents
//! and a real Envoy.

use std::time::Duration;

use kit::app::tls;
use kit::envoy;
use kit::net;
use kit::vm::certificates::{Authority, DISCOVERY_NAME, Files, replace};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, group, probe, service};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::fixture::{Fixture, FixtureSettings};
use kit::vm::machine::Machine;
use kit::vm::traffic::Traffic;
use kit::wait;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use tokio::time::sleep;

/// As many as self-preservation needs.
const ALL: [usize; 3] = [0, 1, 2];
const OUTAGE: Duration = Duration::from_secs(60);

/// Starts machines that report over mutual TLS, and an Envoy that discovery serves in plaintext, so
/// that it is not affected by the certificates of the machines. Returns the CA of the machines, and
/// the files of discovery.
async fn start(name: &str) -> (Fixture, Authority, Files) {
    tls::install_provider();
    let (authority, folder) = (Authority::new(), envoy::folder(name));
    let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
    let flags = ["--disconnect-grace", "1s", "--restart-grace", "2s"];
    let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).tls(&files).flags(&flags);
    discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    let mut machines = Vec::new();
    for machine in ALL {
        let name = format!("m{machine}");
        let files = authority.workload(&folder, &name, NAMESPACE, GROUP);
        let mut machine = Machine::new(&folder, &name, net::loopback()).await;
        machine.report_tls(&discovery, &files);
        machine.start_agent().expect("the agent starts");
        machines.push(machine);
    }
    let subscription = Subscription::delta(discovery.plaintext());
    let client = EnvoyClient::start(&folder, "client", net::loopback(), &subscription).await;
    let fixture = Fixture { folder, machines, client, discovery };
    fixture.until_endpoints(&ALL).await;
    (fixture, authority, files)
}

/// Restarts discovery with a client CA that has signed no certificate of an agent, and waits until
/// all machines are silent.
async fn silence(fixture: &mut Fixture, files: &Files) {
    replace(&files.authority, &Authority::new().pem());
    assert_eq!(fixture.discovery.stop().await, Some(0), "{}", fixture.discovery.log());
    fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    for machine in ALL {
        let view = fixture.until_view(machine, |view| view["selfPreserved"] == true).await;
        assert_eq!((&view["condition"]["status"], &view["endpoint"]), (&"Unknown".into(), &"served".into()));
    }
    let view = fixture.discovery.view().await;
    assert_eq!(view["selfPreservingServices"], Value::from(vec!["shop/payments"]), "{view:#}");
    assert!(preserved(fixture, 3).await, "{}", fixture.discovery.metrics().await);
}

async fn preserved(fixture: &Fixture, endpoints: usize) -> bool {
    let line = format!("\napp_health_discovery_self_preserved_endpoints {endpoints}\n");
    fixture.discovery.metrics().await.contains(&line)
}

/// The right CA, which discovery loads while it runs, lets all agents report again.
async fn restore(fixture: &Fixture, authority: &Authority, files: &Files) {
    replace(&files.authority, &authority.pem());
    for machine in ALL {
        fixture.until_view(machine, |view| view["condition"]["status"] == "True").await;
    }
    fixture.until_endpoints(&ALL).await;
    wait::until("no machine is preserved", async || preserved(fixture, 0).await).await;
}

#[tokio::test]
async fn a_wrong_client_ca_removes_no_machine_until_it_is_released() {
    let (mut fixture, authority, files) = start("vm-wrong-ca").await;
    let traffic = Traffic::start(fixture.client.listener, Duration::from_millis(20));
    let before = fixture.endpoint_changes().await;
    silence(&mut fixture, &files).await;
    fixture.assert_endpoints_stable(&ALL, Duration::from_secs(2)).await;
    restore(&fixture, &authority, &files).await;
    fixture.assert_endpoint_changes(before, 0).await;
    let tally = traffic.take();
    assert!(tally.keys().all(|(status, _)| *status == 200), "{tally:?}");
    drop(traffic);

    silence(&mut fixture, &files).await;
    let released = fixture.discovery.print_workloads(&["release", "--group", GROUP]).await;
    assert_eq!(
        (released.code, released.stdout.as_str()),
        (Some(0), "released 3 endpoints in self-preservation\n")
    );
    fixture.until_endpoints(&[]).await;
    restore(&fixture, &authority, &files).await;
}

/// Neither a stopped process nor a suspended one, which finds that a minute has passed at once, loses
/// an endpoint.
async fn outage(name: &str, suspend: bool) {
    let settings = FixtureSettings { machines: ALL.len(), ..FixtureSettings::default() };
    let mut fixture = Fixture::start(name, settings).await;
    let before = fixture.endpoint_changes().await;
    let mut sessions = Vec::new();
    for machine in ALL {
        let view = fixture.until_view(machine, |view| view["condition"]["status"] == "True").await;
        sessions.push(view["agent"]["session"].as_u64().expect("a session"));
    }
    if suspend {
        kill(fixture.discovery.pid(), Signal::SIGSTOP).expect("discovery runs");
        sleep(OUTAGE).await;
        kill(fixture.discovery.pid(), Signal::SIGCONT).expect("discovery runs");
    } else {
        assert_eq!(fixture.discovery.stop().await, Some(0), "{}", fixture.discovery.log());
        sleep(OUTAGE).await;
        fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    }
    for (machine, session) in ALL.into_iter().zip(sessions) {
        let is_new = |view: &Value| view["agent"]["session"].as_u64() > Some(session);
        fixture.until_view(machine, |view| view["condition"]["status"] == "True" && is_new(view)).await;
    }
    fixture.assert_endpoints_stable(&ALL, Duration::from_secs(1)).await;
    fixture.assert_endpoint_changes(before, 0).await;
}

#[tokio::test]
async fn discovery_that_is_stopped_for_a_minute_loses_no_endpoint() {
    outage("vm-stopped", false).await;
}

#[tokio::test]
async fn discovery_that_is_suspended_for_a_minute_loses_no_endpoint() {
    outage("vm-suspended", true).await;
}
