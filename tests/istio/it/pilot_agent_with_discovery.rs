//! Istio's agent, and ours in its place, on a virtual machine, as clients of our discovery: registration, health,
//! the end of the agent, and an agent without a probe.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use kit::app::switched::Behavior;
use kit::envoy::folder;
use kit::vm::application::{Application, READY_PATH};
use kit::vm::certificates::{Authority, DISCOVERY_NAME, Files};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, PORT, group, probe, service};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::{caller, net, wait};
use serde_json::{Value, json};

use istio_tests::istiod::Istiod;
use istio_tests::program::Program;

use crate::pilot_agent::{Identity, PilotAgent, Settings};

/// Discovery, an application, and an Envoy that uses the service.
struct Fixture {
    program: Program,
    folder: PathBuf,
    discovery: Discovery,
    authority: Authority,
    client: EnvoyClient,
    application: Application,
    files: Files,
    ip: IpAddr,
}

impl Fixture {
    async fn start(name: &str, program: Program) -> Self {
        Self::with_clients_of(name, program, None).await
    }

    /// Starts discovery for clients of this authority instead of the default one.
    async fn with_clients_of(name: &str, program: Program, clients: Option<PathBuf>) -> Self {
        let folder = folder(&format!("{name}-{program:?}"));
        let authority = Authority::new();
        let mut server = authority.issue(&folder, "discovery", DISCOVERY_NAME);
        if let Some(file) = clients {
            server.authority = file;
        }
        let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).tls(&server);
        discovery = discovery.flags(&["--disconnect-grace", "2s"]);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let ip = net::loopback();
        let files = authority.workload(&folder, "machine", NAMESPACE, GROUP);
        let application = Application::start("machine", SocketAddr::new(ip, PORT)).await;
        let subscription = Subscription::sotw(discovery.plaintext());
        let client = EnvoyClient::start(&folder, "client", net::loopback(), &subscription).await;
        Self { program, folder, discovery, authority, client, application, files, ip }
    }

    fn agent(&self, probe: &Value) -> PilotAgent {
        self.agent_of(Identity::Files(&self.files), probe)
    }

    fn agent_of(&self, identity: Identity, probe: &Value) -> PilotAgent {
        let authority = &self.files.authority;
        let (program, ip, discovery) = (self.program, self.ip, self.discovery.secure());
        let settings = Settings { program, ip, discovery, authority, identity, probe };
        PilotAgent::start(&self.folder, &settings)
    }

    async fn until_served(&self, agent: &PilotAgent, is_served: bool) {
        let address = SocketAddr::new(self.ip, PORT);
        let wanted = if is_served { BTreeSet::from([address]) } else { BTreeSet::new() };
        let found = async || (self.client.endpoints().await == wanted).then_some(());
        if wait::try_poll(found).await.is_none() {
            let view = self.discovery.view().await;
            panic!("served must be {is_served}: {view:#}\n{}\n{}", self.discovery.log(), agent.log());
        }
    }

    async fn condition(&self) -> Value {
        self.discovery.workload(self.ip).await["condition"]["status"].clone()
    }
}

/// The probe of an agent, which dials the machine's own address.
fn readiness_probe(ip: IpAddr) -> Value {
    json!({
        "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1,
        "httpGet": {"host": ip.to_string(), "path": READY_PATH, "port": PORT},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs pilot-agent: ./justw test-istio"]
async fn pilot_agent_reports_health() {
    reports_health(Program::Istios).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Istio's template: ./justw test-istio"]
async fn our_agent_reports_health_as_pilot_agent() {
    reports_health(Program::Ours).await;
}

async fn reports_health(program: Program) {
    let fixture = Fixture::start("istio-pilot-agent", program).await;
    let mut agent = fixture.agent(&readiness_probe(fixture.ip));
    fixture.until_served(&agent, true).await;
    assert_eq!(fixture.condition().await, "True");
    // Its Envoy is ready although discovery has no listeners.
    let is_ready = async || caller::get(agent.status, "/healthz/ready", &[]).await.status == 200;
    wait::until_or(|| format!("pilot-agent is ready:\n{}", agent.log()), is_ready).await;
    for _ in 0..10 {
        fixture.application.set_behavior(Behavior::Failing);
        fixture.until_served(&agent, false).await;
        assert_eq!(fixture.condition().await, "False");
        fixture.application.set_behavior(Behavior::Serving);
        fixture.until_served(&agent, true).await;
        assert_eq!(fixture.condition().await, "True");
    }
    // Certificates that are renewed in their files are used for the next stream.
    fixture.authority.workload(&fixture.folder, "machine", NAMESPACE, GROUP);
    // Istio's sends no final report: the endpoint stays for the grace period of a lost stream.
    agent.stop();
    fixture.until_served(&agent, false).await;
    drop(agent);
    let mut agent = fixture.agent(&readiness_probe(fixture.ip));
    fixture.until_served(&agent, true).await;
    agent.kill();
    fixture.until_served(&agent, false).await;
}

/// As at istiod: it never reports, so it is served whatever its health is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs pilot-agent: ./justw test-istio"]
async fn pilot_agent_without_a_probe_is_served() {
    let fixture = Fixture::start("istio-no-probe", Program::Istios).await;
    let agent = fixture.agent(&Value::Null);
    fixture.until_served(&agent, true).await;
    assert_eq!(fixture.condition().await, Value::Null);
}

/// Discovery restarts, and the state that changed meanwhile arrives on the next stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs pilot-agent: ./justw test-istio"]
async fn pilot_agent_reconnects() {
    reconnects(Program::Istios).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Istio's template: ./justw test-istio"]
async fn our_agent_reconnects_as_pilot_agent() {
    reconnects(Program::Ours).await;
}

async fn reconnects(program: Program) {
    let mut fixture = Fixture::start("istio-reconnect", program).await;
    let agent = fixture.agent(&readiness_probe(fixture.ip));
    fixture.until_served(&agent, true).await;
    for behavior in [Behavior::Failing, Behavior::Serving] {
        fixture.discovery.kill().await;
        fixture.application.set_behavior(behavior);
        let is_probed = async || !fixture.application.probes().is_empty();
        wait::until("a probe while discovery is stopped", is_probed).await;
        fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        fixture.until_served(&agent, behavior == Behavior::Serving).await;
    }
}

/// pilot-agent gets its certificate from istiod, renews it, and uses the new one for the next stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod and pilot-agent: ./justw test-istio"]
async fn pilot_agent_renews_the_certificate_of_an_istiod() {
    renews_the_certificate(Program::Istios).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn our_agent_renews_the_certificate_of_an_istiod() {
    renews_the_certificate(Program::Ours).await;
}

/// A token of a machine expires after an hour; the certificate that was written identifies the machine then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn our_agent_identifies_itself_by_its_certificate() {
    let mut istiod = Istiod::start("istio-machine").await;
    istiod.trust_workloads().await;
    let fixture = Fixture::start("istio-identity", Program::Ours).await;
    let mut last = String::new();
    for _ in 0..2 {
        let mut agent = fixture.agent_of(Identity::Certificate(&istiod), &Value::Null);
        let is_issued = async || agent.certificate() != last;
        wait::until_or(|| format!("another certificate\n{}", agent.log()), is_issued).await;
        agent.stop();
        last = agent.certificate();
    }
}

async fn renews_the_certificate(program: Program) {
    let istiod = Istiod::start(&format!("istio-ca-{program:?}")).await;
    let root = istiod.folder.join("workload-root.pem");
    istiod.write_workload_root(&root);
    let mut fixture = Fixture::with_clients_of("istio-renewed", program, Some(root)).await;
    let agent = fixture.agent_of(Identity::Istiod(&istiod), &readiness_probe(fixture.ip));
    fixture.until_served(&agent, true).await;
    let first = agent.certificate();
    let is_renewed = async || !first.is_empty() && agent.certificate() != first;
    wait::until_or(|| format!("another certificate\n{}", agent.log()), is_renewed).await;
    fixture.discovery.kill().await;
    fixture.application.set_behavior(Behavior::Failing);
    let is_probed = async || !fixture.application.probes().is_empty();
    wait::until("a probe while discovery is stopped", is_probed).await;
    fixture.discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    fixture.until_served(&agent, false).await;
}
