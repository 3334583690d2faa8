//! Tests of mutual TLS from end to end: identities that the server rejects, and certificates that
//! change under load.

use std::time::Duration;

use kit::app::switched::Behaviour;
use kit::app::tls;
use kit::envoy;
use kit::net;
use kit::vm::certificates::{Authority, DISCOVERY_NAME, Files, certificate, shown};
use kit::vm::client::{Client, Way};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, group, probe, service};
use kit::vm::machine::Machine;
use kit::vm::scene::Scene;
use kit::vm::traffic::Traffic;
use kit::vm::wait;
use tokio::time::Instant;

/// A discovery server, machines and Envoy, which are connected only by mutual TLS. Machine `n` has
/// the certificate `m<n>`.
struct Secured {
    authority: Authority,
    scene: Scene,
    /// The certificate files of Envoy.
    files: Files,
}

impl Secured {
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
            machine.join_secure(&discovery, &files);
            machine.start_agent().expect("the agent starts");
            all.push(machine);
        }
        let files = authority.workload(&folder, "client", NAMESPACE, "gateway");
        let way = Way { tls: Some(files.clone()), ..Way::delta(discovery.secure()) };
        let client = Client::start(&folder, "envoy", net::loopback(), &way).await;
        let scene = Scene { folder, machines: all, client, discovery };
        scene.until_endpoints(&(0..machines).collect::<Vec<_>>()).await;
        Self { authority, scene, files }
    }

    /// Starts another machine, whose agent uses these certificate files.
    async fn stranger(&self, name: &str, files: &Files) -> Machine {
        let mut machine = Machine::new(&self.scene.folder, name, net::loopback()).await;
        machine.join_secure(&self.scene.discovery, files);
        machine.start_agent().expect("the agent starts");
        machine
    }
}

#[tokio::test]
async fn who_is_not_whom_he_says_changes_nothing() {
    let secured = Secured::start("vm-identity", 1).await;
    let folder = &secured.scene.folder;
    let strangers = [
        ("namespace", secured.authority.workload(folder, "namespace", "other", GROUP)),
        ("account", secured.authority.workload(folder, "account", NAMESPACE, "other")),
        ("domain", secured.authority.issue(folder, "domain", "spiffe://elsewhere/ns/shop/sa/payments")),
        ("no-name", secured.authority.issue(folder, "no-name", "payments.example.com")),
        ("authority", {
            let own = Authority::new().workload(folder, "authority", NAMESPACE, GROUP);
            Files { authority: folder.join("m1-ca.pem"), ..own }
        }),
    ];
    let mut machines = Vec::new();
    for (name, files) in &strangers {
        machines.push(secured.stranger(name, files).await);
    }
    for machine in &machines {
        let error = turned_away(machine).await;
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
    secured.scene.stays(&[0], Duration::from_secs(2)).await;
    let view = secured.scene.discovery.view().await;
    assert_eq!(view["workloads"].as_array().map(Vec::len), Some(1), "{view:#}");
    // A machine with a correct certificate is accepted.
    let files = secured.authority.workload(folder, "late", NAMESPACE, GROUP);
    let mut scene = secured.scene;
    let mut machine = Machine::new(&scene.folder, "late", net::loopback()).await;
    machine.join_secure(&scene.discovery, &files);
    machine.start_agent().expect("the agent starts");
    scene.machines.push(machine);
    scene.until_endpoints(&[0, 1]).await;
}

/// Waits until the server has rejected the agent, and returns the error.
async fn turned_away(machine: &Machine) -> String {
    let error = wait::try_poll(async || {
        let stream = machine.view().await["stream"].clone();
        let error = stream["lastError"].as_str()?.to_owned();
        (stream["connected"] == false).then_some(error)
    });
    error.await.unwrap_or_else(|| panic!("{} was not rejected:\n{}", machine.name, machine.log()))
}

/// Returns the session number of each entry. Each stream of an agent starts a new session.
async fn sessions(scene: &Scene) -> Vec<u64> {
    let mut sessions = Vec::new();
    for machine in &scene.machines {
        sessions.push(
            scene.discovery.workload(machine.ip).await["agent"]["session"].as_u64().unwrap_or_default(),
        );
    }
    sessions
}

/// Lets the first machine fail and recover, and asserts that Envoy gets both changes.
async fn follows(scene: &Scene) {
    scene.machines[0].application.behave(Behaviour::Failing);
    scene.until_endpoints(&[1]).await;
    scene.machines[0].application.behave(Behaviour::Serving);
    scene.until_endpoints(&[0, 1]).await;
}

#[tokio::test]
async fn certificates_change_under_load_and_no_report_is_lost() {
    let secured = Secured::start("vm-rotate", 2).await;
    let scene = &secured.scene;
    let traffic = Traffic::start(scene.client.listener, Duration::from_millis(20));
    let (before, began) = (sessions(scene).await, Instant::now());
    let old = shown(scene.discovery.secure(), &secured.files).await;
    // The certificates of both sides change. An agent opens a new stream within half a minute; it
    // is enough that one agent has done so.
    let files = secured.authority.issue(&scene.folder, "discovery", DISCOVERY_NAME);
    for machine in &scene.machines {
        secured.authority.workload(&scene.folder, &machine.name, NAMESPACE, GROUP);
    }
    loop {
        follows(scene).await;
        let now = sessions(scene).await;
        let is_shown =
            shown(scene.discovery.secure(), &secured.files).await == certificate(&files.certificate);
        if is_shown && now.iter().zip(&before).any(|(now, before)| now > before) {
            break;
        }
        assert!(began.elapsed() < wait::TIMEOUT, "{now:?}, before {before:?}\n{}", scene.state().await);
    }
    let new = shown(scene.discovery.secure(), &secured.files).await;
    assert!(new != old, "the server must use the new certificate");
    // Invalid key files leave the current certificates in use.
    std::fs::write(&files.key, "no key").expect("a writable folder");
    std::fs::write(scene.folder.join("m1-key.pem"), "no key").expect("a writable folder");
    let broken = Instant::now();
    loop {
        follows(scene).await;
        let server = scene.discovery.metrics().await;
        let agent = scene.machines[0].metrics().await;
        if server.contains("app_health_discovery_tls_reloads_total{result=\"failure\"}")
            && agent.contains("app_health_agent_tls_reload_total{result=\"failed\"}")
        {
            break;
        }
        assert!(broken.elapsed() < wait::TIMEOUT, "the files were not read\n{}", scene.state().await);
    }
    follows(scene).await;
    assert!(shown(scene.discovery.secure(), &secured.files).await == new);
    let tally = traffic.take();
    assert!(!tally.contains_key(&(503, String::new())), "Envoy always had an endpoint: {tally:?}");
}
