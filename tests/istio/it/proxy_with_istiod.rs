//! `--proxy-xds` with istiod over mutual TLS: configuration, certificates and health on one stream, in
//! both variants of the protocol.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use kit::app::switched::Behavior;
use kit::vm::application::READY_PATH;
use kit::vm::documents::{HOST, NAMESPACE, PORT};
use kit::{caller, net, wait};
use serde_json::{Value, json};

use crate::proxied_machine::ProxiedMachine;
use istio_tests::istiod::Istiod;

const VARIANTS: [&str; 2] = ["sotw", "delta"];

struct Fixture {
    istiod: Istiod,
    /// One for each variant.
    machines: Vec<ProxiedMachine>,
    /// The listener of the service, which both Envoys get from istiod.
    listener: SocketAddr,
}

impl Fixture {
    async fn start() -> Self {
        let istiod = Istiod::start("istio-proxy").await;
        let listener = SocketAddr::new(net::loopback(), PORT);
        istiod.cluster.apply(&sidecar(listener).to_string());
        let mut machines = Vec::new();
        for xds in VARIANTS {
            machines.push(ProxiedMachine::start(&istiod, &format!("istio-proxy-{xds}"), xds).await);
        }
        Self { istiod, machines, listener }
    }

    /// Waits until both Envoys have the endpoints of these machines and no others.
    async fn until_endpoints(&self, machines: &[usize]) {
        let address = |machine: &usize| self.machines[*machine].application.address;
        let wanted: BTreeSet<SocketAddr> = machines.iter().map(address).collect();
        for machine in &self.machines {
            if wait::try_poll(async || (machine.endpoints().await == wanted).then_some(())).await.is_none() {
                let (found, view) = (machine.endpoints().await, machine.view().await);
                panic!(
                    "expected {wanted:?}, got {found:?}\n{view:#}\n{}\n{}",
                    machine.log(),
                    self.istiod.log()
                );
            }
        }
    }

    /// Returns true if a request through the listener of istiod reaches a machine.
    async fn is_served(&self) -> bool {
        let request = format!("GET {READY_PATH} HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
        caller::send(self.listener, request.as_bytes()).await.status == 200
    }

    /// Waits until the condition of the machine's entry has this status.
    async fn until_condition(&self, machine: usize, status: &str) {
        let machine = &self.machines[machine];
        let is_so = async || self.istiod.condition(machine.ip()).as_deref() == Some(status);
        let what = || {
            let entry = self.istiod.entry(machine.ip());
            format!("{} is {status}: {entry:#}\n{}\n{}", machine.ip(), machine.log(), self.istiod.log())
        };
        wait::until_or(what, is_so).await;
    }
}

/// A listener of the namespace's Envoys for the service, on this address.
fn sidecar(listener: SocketAddr) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "Sidecar",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"egress": [{
            "port": {"number": listener.port(), "protocol": "HTTP", "name": "http"},
            "bind": listener.ip().to_string(),
            "captureMode": "NONE",
            "hosts": ["./*"],
        }]},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn envoys_and_health_through_the_agent() {
    let mut fixture = Fixture::start().await;
    envoy_is_configured(&fixture).await;
    transitions(&fixture).await;
    istiod_restarts(&mut fixture).await;
    agent_starts_without_istiod(&mut fixture).await;
}

/// Clusters, endpoints, listeners and routes of istiod are accepted, and requests reach a machine.
async fn envoy_is_configured(fixture: &Fixture) {
    fixture.until_endpoints(&[0, 1]).await;
    for (number, machine) in fixture.machines.iter().enumerate() {
        fixture.until_condition(number, "True").await;
        machine.until_view("connected", |view| view["connected"] == true).await;
        let view = machine.view().await;
        assert_eq!(view["envoy"], VARIANTS[number], "{view:#}");
        assert_eq!(view["notSubscribed"], 0, "{view:#}");
        let types = view["types"].as_array().expect("a list").iter();
        for kind in ["Cluster", "ClusterLoadAssignment", "Listener", "RouteConfiguration"] {
            let of_kind =
                |view: &&Value| view["type"].as_str().is_some_and(|name| name.ends_with(&format!(".{kind}")));
            let found = types.clone().find(of_kind).unwrap_or_else(|| panic!("no {kind}: {view:#}"));
            assert_eq!(found["nacks"], 0, "{view:#}\n{}", machine.log());
            assert_ne!(found["acks"], 0, "{view:#}\n{}", machine.log());
        }
    }
    wait::until("a response through the listener of istiod", async || fixture.is_served().await).await;
}

/// The condition and the endpoints in both Envoys follow the health of each machine.
async fn transitions(fixture: &Fixture) {
    for _ in 0..5 {
        for (failing, other) in [(0, 1), (1, 0)] {
            fixture.machines[failing].application.set_behavior(Behavior::Failing);
            fixture.until_endpoints(&[other]).await;
            fixture.until_condition(failing, "False").await;
            fixture.machines[failing].application.set_behavior(Behavior::Serving);
            fixture.until_endpoints(&[0, 1]).await;
            fixture.until_condition(failing, "True").await;
        }
    }
}

/// Envoy keeps its stream and its endpoints, and a transition during the outage arrives afterwards.
async fn istiod_restarts(fixture: &mut Fixture) {
    for (behavior, status, endpoints) in
        [(Behavior::Failing, "False", &[1][..]), (Behavior::Serving, "True", &[0, 1])]
    {
        let mut before = Vec::new();
        for machine in &fixture.machines {
            before.push(machine.endpoints().await);
        }
        fixture.istiod.kill();
        for (machine, before) in fixture.machines.iter().zip(&before) {
            machine.until_view("disconnected", |view| view["connected"] == false).await;
            assert_eq!(machine.endpoints().await, *before);
        }
        fixture.machines[0].application.set_behavior(behavior);
        fixture.istiod.start_process(&[]).await;
        fixture.until_endpoints(endpoints).await;
        fixture.until_condition(0, status).await;
        for machine in &fixture.machines {
            let streams = machine.stat("cluster.xds-grpc.upstream_rq_total").await;
            assert_eq!(streams, Some(1), "Envoy's stream was lost\n{}", machine.log());
        }
    }
}

/// An Envoy that starts while istiod is stopped gets the last good configuration, and is confirmed by
/// istiod afterwards.
async fn agent_starts_without_istiod(fixture: &mut Fixture) {
    fixture.istiod.kill();
    for machine in &mut fixture.machines {
        machine.stop_agent().await;
        machine.start_agent();
    }
    fixture.until_endpoints(&[0, 1]).await;
    for machine in &fixture.machines {
        machine.until_view("stale", |view| !view["stale"].is_null()).await;
    }
    wait::until("a response through the stored listener", async || fixture.is_served().await).await;
    fixture.istiod.start_process(&[]).await;
    for machine in &fixture.machines {
        machine.until_view("confirmed", |view| view["stale"].is_null() && view["connected"] == true).await;
    }
    fixture.until_endpoints(&[0, 1]).await;
    for number in 0..VARIANTS.len() {
        fixture.until_condition(number, "True").await;
    }
}
