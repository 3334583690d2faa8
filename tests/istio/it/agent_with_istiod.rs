//! Our agent and Envoys with istiod: both variants of the protocol, in plaintext and with mutual TLS.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use kit::app::switched::Behavior;
use kit::vm::certificates::{DISCOVERY_NAME, Files, replace};
use kit::vm::documents::{GROUP, HOST, NAMESPACE, PORT, group, probe};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::machine::Machine;
use kit::{net, wait};
use nix::sys::signal::Signal;
use serde_json::json;

use istio_tests::istiod::Istiod;

/// Which agent a machine has.
struct Case {
    name: &'static str,
    xds: &'static str,
    port: u16,
    /// Additional flags of the agent.
    flags: &'static [&'static str],
}

const CASES: [Case; 4] = [
    Case { name: "sotw-plaintext", xds: "sotw", port: 15010, flags: &[] },
    Case { name: "delta-plaintext", xds: "delta", port: 15010, flags: &[] },
    Case { name: "sotw-tls", xds: "sotw", port: 15012, flags: &[] },
    Case { name: "delta-tls", xds: "delta", port: 15012, flags: &[] },
];

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("a path")
}

pub(crate) fn client_files(files: &Files) -> [&str; 6] {
    let Files { authority, certificate, key } = files;
    let [authority, certificate, key] = [authority, certificate, key].map(|file| path(file));
    ["--discovery-ca", authority, "--discovery-cert", certificate, "--discovery-key", key]
}

/// Prepares a machine whose agent connects to this port of istiod as a member of the group, with a
/// probe in a local file unless `flags` has none.
async fn machine(istiod: &Istiod, name: &str, port: u16) -> Machine {
    let mut machine = Machine::new(&istiod.folder, name, net::loopback()).await;
    machine.add_flags(&["--discovery", &istiod.address(port).to_string()]);
    machine.add_flags(&["--group", GROUP, "--namespace", NAMESPACE, "--service-account", GROUP]);
    if port == 15010 {
        machine.add_flags(&["--discovery-plaintext"]);
    } else {
        machine.add_flags(&["--discovery-san", DISCOVERY_NAME]);
    }
    machine
}

fn add_probe(istiod: &Istiod, machine: &mut Machine) {
    let file = istiod.folder.join("group.yaml");
    // Agents that were started before read it again.
    replace(&file, &group(&probe()).to_string());
    machine.add_flags(&["--workload-group", path(&file)]);
}

struct Fixture {
    istiod: Istiod,
    machines: Vec<Machine>,
    clients: Vec<EnvoyClient>,
}

impl Fixture {
    async fn start(istiod: Istiod) -> Self {
        let mut machines = Vec::new();
        for Case { name, xds, port, flags } in CASES {
            let mut machine = machine(&istiod, name, port).await;
            add_probe(&istiod, &mut machine);
            machine.add_flags(&["--xds", xds]);
            machine.add_flags(flags);
            if port == 15012 {
                let files = istiod.authority.workload(&istiod.folder, name, NAMESPACE, GROUP);
                machine.add_flags(&client_files(&files));
            }
            machine.start_agent().expect("the agent starts");
            machines.push(machine);
        }
        let files = istiod.authority.workload(&istiod.folder, "client", NAMESPACE, "client");
        let tls = Subscription { tls: Some(files), ..Subscription::delta(istiod.address(15012)) };
        let mut clients = Vec::new();
        for subscription in [Subscription::sotw(istiod.address(15010)), tls] {
            let ip = net::loopback();
            // istiod reads the type and the address of the proxy from its ID.
            let id = format!("sidecar~{ip}~c.shop~l");
            clients.push(EnvoyClient::start(&istiod.folder, &id, ip, &subscription).await);
        }
        Self { istiod, machines, clients }
    }

    /// Waits until both Envoys have the endpoints of these machines and no others.
    async fn until_endpoints(&self, machines: &[usize]) {
        let address = |machine: &usize| SocketAddr::new(self.machines[*machine].ip, PORT);
        let wanted: BTreeSet<SocketAddr> = machines.iter().map(address).collect();
        for client in &self.clients {
            if wait::try_poll(async || (client.endpoints().await == wanted).then_some(())).await.is_none() {
                let found = client.endpoints().await;
                let logs: Vec<String> = self.machines.iter().map(Machine::log).collect();
                panic!(
                    "expected {wanted:?}, got {found:?}\n{}\n{}\n{}",
                    logs.join("\n"),
                    self.istiod.log(),
                    client.envoy.log()
                );
            }
        }
    }

    /// Waits until the condition of the machine's entry has this status.
    async fn until_condition(&self, machine: usize, status: &str) {
        let ip = self.machines[machine].ip;
        let is_so = async || self.istiod.condition(ip).as_deref() == Some(status);
        let what = || format!("{ip} is {status}: {:#}\n{}", self.istiod.entry(ip), self.istiod.log());
        wait::until_or(what, is_so).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn agents_report_to_istiod() {
    let mut istiod = Istiod::start("istio-agents").await;
    plaintext_is_refused_by_default(&istiod).await;
    istiod.kill();
    istiod.start_process(&[("ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY", "false")]).await;
    let mut fixture = Fixture::start(istiod).await;
    twenty_transitions(&fixture).await;
    agent_restarts(&mut fixture).await;
    agent_is_killed(&mut fixture).await;
    istiod_restarts_twice(&mut fixture).await;
    entry_with_labels_in_its_metadata(&fixture).await;
    agent_with_a_token(&mut fixture).await;
    agent_with_an_expired_certificate(&fixture.istiod).await;
    agent_without_a_probe(&mut fixture).await;
}

async fn plaintext_is_refused_by_default(istiod: &Istiod) {
    let mut machine = machine(istiod, "unverified", 15010).await;
    add_probe(istiod, &mut machine);
    machine.start_agent().expect("the agent starts");
    let words = "requires a verified identity";
    let is_refused = async || {
        machine.view().await["stream"]["lastError"].as_str().is_some_and(|text| text.contains(words))
    };
    wait::until_or(|| format!("{words}\n{}\n{}", machine.log(), istiod.log()), is_refused).await;
}

/// Half of the machines fail, then the other half.
async fn twenty_transitions(fixture: &Fixture) {
    fixture.until_endpoints(&[0, 1, 2, 3]).await;
    for transition in 0..20 {
        let is_serving = |machine: usize| (machine + transition).is_multiple_of(2);
        for (number, machine) in fixture.machines.iter().enumerate() {
            let behavior = if is_serving(number) { Behavior::Serving } else { Behavior::Failing };
            machine.application.set_behavior(behavior);
        }
        let serving: Vec<usize> = (0..CASES.len()).filter(|number| is_serving(*number)).collect();
        fixture.until_endpoints(&serving).await;
        for number in 0..CASES.len() {
            fixture.until_condition(number, if is_serving(number) { "True" } else { "False" }).await;
        }
    }
    for machine in &fixture.machines {
        machine.application.set_behavior(Behavior::Serving);
    }
    fixture.until_endpoints(&[0, 1, 2, 3]).await;
}

/// An agent that ends removes its endpoint, and the next one adds it again.
async fn agent_restarts(fixture: &mut Fixture) {
    for machine in &fixture.machines {
        machine.signal(Signal::SIGTERM);
    }
    fixture.until_endpoints(&[]).await;
    for machine in &mut fixture.machines {
        assert_eq!(machine.agent_end().await, Some(0));
        machine.start_agent().expect("the agent starts");
    }
    fixture.until_endpoints(&[0, 1, 2, 3]).await;
}

/// istiod removes the entry after its own grace period.
async fn agent_is_killed(fixture: &mut Fixture) {
    for machine in &mut fixture.machines[..2] {
        machine.kill_agent().await;
    }
    fixture.until_endpoints(&[2, 3]).await;
    for machine in &mut fixture.machines[..2] {
        machine.start_agent().expect("the agent starts");
    }
    fixture.until_endpoints(&[0, 1, 2, 3]).await;
}

/// A transition during each outage arrives afterwards.
async fn istiod_restarts_twice(fixture: &mut Fixture) {
    for (behavior, endpoints) in [(Behavior::Failing, &[1, 2][..]), (Behavior::Serving, &[0, 1, 2, 3])] {
        fixture.istiod.kill();
        for machine in [0, 3] {
            fixture.machines[machine].application.set_behavior(behavior);
        }
        fixture.istiod.start_process(&[("ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY", "false")]).await;
        fixture.until_endpoints(endpoints).await;
    }
}

/// A ServiceEntry selects by the labels of the metadata too.
async fn entry_with_labels_in_its_metadata(fixture: &Fixture) {
    let ip = net::loopback();
    let entry = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry",
        "metadata": {"name": "labelled", "namespace": NAMESPACE, "labels": {"app": GROUP}},
        "spec": {"address": ip.to_string(), "ports": {"http": PORT}},
    });
    fixture.istiod.cluster.apply(&entry.to_string());
    let address = SocketAddr::new(ip, PORT);
    let has = async || fixture.clients[0].endpoints().await.contains(&address);
    wait::until(&format!("the endpoint of {HOST}"), has).await;
    fixture.istiod.cluster.kubectl_ok(&["delete", "workloadentry", "labelled", "-n", NAMESPACE], "");
    fixture.until_endpoints(&[0, 1, 2, 3]).await;
}

/// The token of a service account proves the identity instead of a certificate.
async fn agent_with_a_token(fixture: &mut Fixture) {
    let token = fixture.istiod.folder.join("service-account-token");
    fixture.istiod.write_token(&token);
    let authority = fixture.istiod.authority_file().to_owned();
    let mut machine = machine(&fixture.istiod, "token", 15012).await;
    add_probe(&fixture.istiod, &mut machine);
    machine.add_flags(&["--discovery-ca", path(&authority), "--discovery-token-file", path(&token)]);
    machine.start_agent().expect("the agent starts");
    fixture.machines.push(machine);
    fixture.until_endpoints(&[0, 1, 2, 3, 4]).await;
    fixture.until_condition(4, "True").await;
}

async fn agent_with_an_expired_certificate(istiod: &Istiod) {
    let mut machine = machine(istiod, "expired", 15012).await;
    add_probe(istiod, &mut machine);
    let mut files = istiod.authority.workload(&istiod.folder, "expired", NAMESPACE, GROUP);
    let name = format!("spiffe://cluster.local/ns/{NAMESPACE}/sa/{GROUP}");
    let expired = istiod.authority.sign_expired(&name);
    for (file, text) in [(&mut files.certificate, expired.certificate), (&mut files.key, expired.key)] {
        std::fs::write(file, text).expect("a writable folder");
    }
    machine.add_flags(&client_files(&files));
    machine.start_agent().expect("the agent starts");
    let failed = "app_health_agent_discovery_connects_total{result=\"failed\"} 3";
    wait::until("three attempts", async || machine.metrics().await.contains(failed)).await;
    let log = machine.log();
    assert_eq!(log.matches("because it has expired (--discovery-cert)").count(), 1, "{log}");
    assert_eq!(log.matches("discovery server").count(), 1, "{log}");
}

/// istiod never sends a probe, so it serves the machine whatever its health is, and the agent says so.
async fn agent_without_a_probe(fixture: &mut Fixture) {
    let mut machine = machine(&fixture.istiod, "no-probe", 15010).await;
    machine.application.set_behavior(Behavior::Failing);
    machine.start_agent().expect("the agent starts");
    let is_known = async || machine.view().await["stream"]["nothingToReport"] == true;
    wait::until_or(|| format!("the agent says so\n{}", machine.log()), is_known).await;
    assert_eq!(machine.log().matches("health is not reported").count(), 1, "{}", machine.log());
    fixture.machines.push(machine);
    fixture.until_endpoints(&[0, 1, 2, 3, 4, 5]).await;
}
