//! Tests of mutual TLS from end to end: identities that the server rejects, and certificates that
//! change under load.

use std::time::Duration;

use kit::app::switched::Behavior;
use kit::app::tls;
use kit::envoy;
use kit::net;
use kit::vm::certificates::{Authority, DISCOVERY_NAME, Files, certificate, presented_certificate};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, group, probe, service};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::fixture::Fixture;
use kit::vm::machine::Machine;
use kit::vm::traffic::Traffic;
use kit::wait;
use tokio::time::Instant;

/// A discovery server, machines and Envoy, which are connected only by mutual TLS. Machine `n` has
/// the certificate `m<n>`.
struct TlsFixture {
    authority: Authority,
    fixture: Fixture,
    /// The certificate files of Envoy.
    files: Files,
}

impl TlsFixture {
    async fn start(name: &str, machines: usize) -> Self {
        tls::install_provider();
        let (authority, folder) = (Authority::new(), envoy::folder(name));
        let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
        let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).tls(&files);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let mut all = Vec::new();
        for number in 1..=machines {
            let name = format!("m{number}");
            let files = authority.workload(&folder, &name, NAMESPACE, GROUP);
            let mut machine = Machine::new(&folder, &name, net::loopback()).await;
            machine.report_tls(&discovery, &files);
            machine.start_agent().expect("the agent starts");
            all.push(machine);
        }
        let files = authority.workload(&folder, "client", NAMESPACE, "gateway");
        let subscription =
            Subscription { tls: Some(files.clone()), ..Subscription::delta(discovery.secure()) };
        let client = EnvoyClient::start(&folder, "envoy", net::loopback(), &subscription).await;
        let fixture = Fixture { folder, machines: all, client, discovery };
        fixture.until_endpoints(&(0..machines).collect::<Vec<_>>()).await;
        Self { authority, fixture, files }
    }

    /// Starts another machine, whose agent uses these certificate files.
    async fn start_machine(&self, name: &str, files: &Files) -> Machine {
        let mut machine = Machine::new(&self.fixture.folder, name, net::loopback()).await;
        machine.report_tls(&self.fixture.discovery, files);
        machine.start_agent().expect("the agent starts");
        machine
    }
}

#[tokio::test]
async fn wrong_identities_are_rejected() {
    let tls_fixture = TlsFixture::start("vm-identity", 1).await;
    let folder = &tls_fixture.fixture.folder;
    let identities = [
        ("namespace", tls_fixture.authority.workload(folder, "namespace", "other", GROUP)),
        ("account", tls_fixture.authority.workload(folder, "account", NAMESPACE, "other")),
        ("domain", tls_fixture.authority.issue(folder, "domain", "spiffe://elsewhere/ns/shop/sa/payments")),
        ("no-name", tls_fixture.authority.issue(folder, "no-name", "payments.example.com")),
        ("authority", {
            let own = Authority::new().workload(folder, "authority", NAMESPACE, GROUP);
            Files { authority: folder.join("m1-ca.pem"), ..own }
        }),
    ];
    let mut machines = Vec::new();
    for (name, files) in &identities {
        machines.push(tls_fixture.start_machine(name, files).await);
    }
    for machine in &machines {
        let error = wait_for_rejection(machine).await;
        // An agent whose certificate is accepted gets the reason for the rejection; the others fail
        // before that.
        match machine.name.as_str() {
            "namespace" | "account" => {
                assert!(error.contains("PermissionDenied") || error.contains("PERMISSION_DENIED"), "{error}")
            }
            "domain" | "no-name" => assert!(
                error.contains("nauthenticated")
                    || error.contains("handshake")
                    || error.contains("UNAUTHENTICATED"),
                "{error}"
            ),
            _ => assert!(!error.is_empty(), "{error}"),
        }
    }
    tls_fixture.fixture.assert_endpoints_stable(&[0], Duration::from_secs(2)).await;
    let view = tls_fixture.fixture.discovery.view().await;
    assert_eq!(view["workloads"].as_array().map(Vec::len), Some(1), "{view:#}");
    // A machine with a correct certificate is accepted.
    let files = tls_fixture.authority.workload(folder, "late", NAMESPACE, GROUP);
    let mut fixture = tls_fixture.fixture;
    let mut machine = Machine::new(&fixture.folder, "late", net::loopback()).await;
    machine.report_tls(&fixture.discovery, &files);
    machine.start_agent().expect("the agent starts");
    fixture.machines.push(machine);
    fixture.until_endpoints(&[0, 1]).await;
}

/// Waits until the server has rejected the agent, and returns the error.
async fn wait_for_rejection(machine: &Machine) -> String {
    let error = wait::try_poll(async || {
        let stream = machine.view().await["stream"].clone();
        let error = stream["lastError"].as_str()?.to_owned();
        (stream["connected"] == false).then_some(error)
    });
    error.await.unwrap_or_else(|| panic!("{} was not rejected:\n{}", machine.name, machine.log()))
}

/// Returns the session number of each entry. Each stream of an agent starts a new session.
async fn sessions(fixture: &Fixture) -> Vec<u64> {
    let mut sessions = Vec::new();
    for machine in &fixture.machines {
        sessions.push(
            fixture.discovery.workload(machine.ip).await["agent"]["session"].as_u64().unwrap_or_default(),
        );
    }
    sessions
}

/// Lets the first machine fail and recover, and asserts that Envoy gets both changes.
async fn follows(fixture: &Fixture) {
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[1]).await;
    fixture.machines[0].application.set_behavior(Behavior::Serving);
    fixture.until_endpoints(&[0, 1]).await;
}

#[tokio::test]
async fn certificates_change_under_load_and_no_report_is_lost() {
    let tls_fixture = TlsFixture::start("vm-rotate", 2).await;
    let fixture = &tls_fixture.fixture;
    let traffic = Traffic::start(fixture.client.listener, Duration::from_millis(20));
    let (before, began) = (sessions(fixture).await, Instant::now());
    let old = presented_certificate(fixture.discovery.secure(), &tls_fixture.files).await;
    // The certificates of both sides change. An agent opens a new stream within half a minute; it
    // is enough that one agent has done so.
    let files = tls_fixture.authority.issue(&fixture.folder, "discovery", DISCOVERY_NAME);
    for machine in &fixture.machines {
        tls_fixture.authority.workload(&fixture.folder, &machine.name, NAMESPACE, GROUP);
    }
    loop {
        follows(fixture).await;
        let now = sessions(fixture).await;
        let is_shown = presented_certificate(fixture.discovery.secure(), &tls_fixture.files).await
            == certificate(&files.certificate);
        if is_shown && now.iter().zip(&before).any(|(now, before)| now > before) {
            break;
        }
        assert!(began.elapsed() < wait::timeout(), "{now:?}, before {before:?}\n{}", fixture.state().await);
    }
    let new = presented_certificate(fixture.discovery.secure(), &tls_fixture.files).await;
    assert!(new != old, "the server must use the new certificate");
    // Invalid key files leave the current certificates in use.
    std::fs::write(&files.key, "no key").expect("a writable folder");
    std::fs::write(fixture.folder.join("m1-key.pem"), "no key").expect("a writable folder");
    let broken = Instant::now();
    loop {
        follows(fixture).await;
        let server = fixture.discovery.metrics().await;
        let agent = fixture.machines[0].metrics().await;
        if server.contains("app_health_discovery_tls_reloads_total{result=\"failure\"}")
            && agent.contains("app_health_agent_tls_reload_total{result=\"failed\"}")
        {
            break;
        }
        assert!(broken.elapsed() < wait::timeout(), "the files were not read\n{}", fixture.state().await);
    }
    follows(fixture).await;
    assert!(presented_certificate(fixture.discovery.secure(), &tls_fixture.files).await == new);
    let tally = traffic.take();
    assert!(!tally.contains_key(&(503, String::new())), "Envoy always had an endpoint: {tally:?}");
}
