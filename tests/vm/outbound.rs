//! Tests of `--outbound-listeners`: a real Envoy gets listeners and routes from discovery, and its
//! requests reach healthy machines only.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

use kit::app::switched::Behavior;
use kit::caller::{self, Answer};
use kit::envoy::{self, Version, workspace};
use kit::net;
use kit::sidecar::Builder;
use kit::vm::application::{Application, MACHINE};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{HOST, NAMESPACE, PORT, group, probe, service};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::machine::Machine;
use kit::vm::stored_xds;
use kit::vm::traffic::Traffic;
use kit::wait;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Discovery, and an Envoy without listeners for its services in the bootstrap.
struct Setup {
    discovery: Discovery,
    client: EnvoyClient,
    /// The address of the listeners.
    ip: IpAddr,
}

impl Setup {
    async fn start(name: &str, subscription: fn(SocketAddr) -> Subscription, documents: &[Value]) -> Self {
        let (folder, ip) = (envoy::folder(name), net::loopback());
        let mut discovery =
            Discovery::new(&folder, documents).flags(&["--outbound-listeners", &ip.to_string()]);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let subscription = Subscription { listeners: true, ..subscription(discovery.plaintext()) };
        let client = EnvoyClient::start(&folder, "client", net::loopback(), &subscription).await;
        Self { discovery, client, ip }
    }

    async fn machine(&self, name: &str) -> Machine {
        let folder = self.discovery.folder.parent().expect("the folder of the test");
        let mut machine = Machine::new(folder, name, net::loopback()).await;
        machine.report_plaintext(&self.discovery);
        machine.start_agent().expect("the agent starts");
        machine
    }

    /// Sends a request for `host` to the listener of a port; the status is 0 without a listener.
    async fn request(&self, host: &str, port: u16) -> Answer {
        let listener = SocketAddr::new(self.ip, port);
        caller::get_host(listener, host, "/", &[("Connection", "close")]).await
    }

    async fn until_status(&self, host: &str, port: u16, status: u16) {
        let what = async || format!("{}\n{}", self.discovery.log(), self.client.envoy.log());
        let is_there = async || (self.request(host, port).await.status == status).then_some(());
        if wait::try_poll(is_there).await.is_none() {
            let found = self.request(host, port).await.status;
            panic!("{host} port {port}: status {found}, expected {status}\n{}", what().await);
        }
    }

    async fn until_endpoints(&self, machines: &[&Machine]) {
        let wanted = machines.iter().map(|machine| machine.application.address).collect();
        wait::until("the endpoints", async || self.client.endpoints().await == wanted).await;
    }

    /// Returns the number of connections to the cluster of a service on port 5432.
    async fn connections(&self, name: &str) -> u64 {
        let text = self.client.envoy.admin("/stats").await.expect("the admin interface");
        let line = format!("cluster.outbound|5432||{}.upstream_cx_total: ", host(name));
        let count = text.lines().find_map(|found| found.strip_prefix(&line));
        count.expect("Envoy counts the connections of a cluster").trim().parse().expect("a number")
    }

    /// Asserts that Envoy accepted all that discovery sent.
    async fn assert_accepted(&self) {
        let view = self.discovery.view().await;
        let clients = view["clients"].as_array().expect("a list");
        let types: Vec<&str> = clients.iter().filter_map(|client| client["type"].as_str()).collect();
        assert_eq!(types, ["CDS", "EDS", "LDS", "RDS"], "{view:#}");
        assert!(clients.iter().all(|client| client["nack"].is_null()), "{view:#}");
        let metrics = self.discovery.metrics().await;
        assert!(!metrics.contains("app_health_discovery_nacks_total{"), "{metrics}");
    }

    fn remove_service(&self, name: &str) {
        let file = self.discovery.folder.join(format!("config/ServiceEntry-{name}.yaml"));
        std::fs::remove_file(file).expect("the document exists");
    }
}

/// Returns the service with another name and host, on this port with this protocol. Its machines are
/// the same.
fn named(name: &str, port: u16, protocol: &str) -> Value {
    let mut service = service();
    service["metadata"]["name"] = json!(name);
    service["spec"]["hosts"] = json!([host(name)]);
    service["spec"]["ports"][0]["number"] = json!(port);
    service["spec"]["ports"][0]["protocol"] = json!(protocol);
    service
}

fn host(name: &str) -> String {
    format!("{name}.shop.example.com")
}

fn oldest(discovery: SocketAddr) -> Subscription {
    Subscription { version: Version::Floor, ..Subscription::delta(discovery) }
}

/// Requests reach the service of their host on healthy machines only, and other services may come and
/// go meanwhile.
async fn requests_reach_healthy_machines(name: &str, subscription: fn(SocketAddr) -> Subscription) {
    let setup = Setup::start(name, subscription, &[group(&probe()), service()]).await;
    let (first, second) = (setup.machine("m1").await, setup.machine("m2").await);
    setup.until_endpoints(&[&first, &second]).await;
    setup.until_status(HOST, PORT, 200).await;
    assert_eq!(setup.request(&format!("{HOST}:{PORT}"), PORT).await.status, 200);
    assert_eq!(setup.request("unknown.example.com", PORT).await.status, 404);

    let listener = SocketAddr::new(setup.ip, PORT);
    let traffic = Traffic::start_host(listener, HOST, &[], Duration::from_millis(5));
    // Another port, and another host on the same port.
    setup.discovery.configure(&named("other", 8081, "HTTP2"));
    setup.discovery.configure(&named("cart", PORT, "HTTP"));
    setup.until_status(&host("other"), 8081, 200).await;
    setup.until_status(&host("cart"), PORT, 200).await;
    assert_eq!(setup.request(HOST, 8081).await.status, 404);
    setup.remove_service("other");
    setup.remove_service("cart");
    setup.until_status(&host("other"), 8081, 0).await;
    setup.until_status(&host("cart"), PORT, 404).await;
    let counts = traffic.take();
    let served: u64 = counts.iter().filter(|((status, _), _)| *status == 200).map(|(_, count)| count).sum();
    assert!(served > 0 && served == counts.values().sum::<u64>(), "{counts:?}");
    drop(traffic);

    second.application.set_behavior(Behavior::Failing);
    setup.until_endpoints(&[&first]).await;
    let requests = second.application.requests();
    for _ in 0..20 {
        assert_eq!(setup.request(HOST, PORT).await.status, 200);
    }
    assert_eq!(second.application.requests(), requests, "the unhealthy machine must get no request");
    first.application.set_behavior(Behavior::Failing);
    setup.until_endpoints(&[]).await;
    assert_eq!(setup.request(HOST, PORT).await.status, 503);
    setup.assert_accepted().await;
}

#[tokio::test]
async fn requests_reach_healthy_machines_sotw() {
    requests_reach_healthy_machines("vm-out-sotw", Subscription::sotw).await;
}

#[tokio::test]
async fn requests_reach_healthy_machines_delta() {
    requests_reach_healthy_machines("vm-out-delta", Subscription::delta).await;
}

#[tokio::test]
async fn requests_reach_healthy_machines_with_the_oldest_envoy() {
    requests_reach_healthy_machines("vm-out-floor", oldest).await;
}

/// Connections of other protocols have no host, so one service owns the port.
#[tokio::test]
async fn connections_reach_the_first_service_of_a_port() {
    let documents = [group(&probe()), named("db", 5432, "TCP"), named("other", 5432, "TCP")];
    let setup = Setup::start("vm-out-tcp", Subscription::sotw, &documents).await;
    let _machine = setup.machine("m1").await;
    setup.until_status("any.example.com", 5432, 200).await;
    assert_eq!(setup.connections("other").await, 0);

    let conflict = format!(
        "ServiceEntry shop/other: \"{}\" port 5432 with protocol TCP has no outbound listener: it is the port of ServiceEntry shop/db with protocol TCP",
        host("other")
    );
    assert_eq!(setup.discovery.view().await["outboundConflicts"], json!([conflict]));
    assert_eq!(setup.discovery.log().matches("service without outbound listener").count(), 1);

    // The other service takes the port over, and then one with HTTP does.
    setup.remove_service("db");
    wait::until("connections to the other service", async || {
        setup.request("any.example.com", 5432).await;
        setup.connections("other").await > 0
    })
    .await;
    setup.discovery.configure(&named("a", 5432, "HTTP"));
    setup.until_status("any.example.com", 5432, 404).await;
    setup.until_status(&host("a"), 5432, 200).await;
    setup.assert_accepted().await;
}

/// An application that was first keeps its port, and Envoy listens on the others.
#[tokio::test]
async fn a_port_in_use_affects_only_its_listener() {
    let documents = [group(&probe()), named("a", 8081, "TCP"), service()];
    let setup = Setup::start("vm-out-in-use", Subscription::sotw, &[]).await;
    let _other = TcpListener::bind((setup.ip, 8081)).expect("the port is free");
    let _machine = setup.machine("m1").await;
    documents.iter().for_each(|document| setup.discovery.configure(document));
    setup.until_status(HOST, PORT, 200).await;
    wait::until("the rejection is shown", async || {
        let view = setup.discovery.view().await;
        let mut clients = view["clients"].as_array().into_iter().flatten();
        let listeners = clients.find(|client| client["type"] == "LDS");
        listeners.and_then(|it| it["nack"].as_str()).is_some_and(|text| text.contains(":8081"))
    })
    .await;
    setup.discovery.configure(&named("b", 8082, "TCP"));
    setup.until_status("any.example.com", 8082, 200).await;
    assert_eq!(setup.request(HOST, PORT).await.status, 200);
}

/// An agent starts Envoy on a machine without an application, with the shipped example. Envoy gets its
/// listeners without discovery too.
#[tokio::test]
async fn an_agent_passes_listeners_on_and_stores_them() {
    let (name, outbound) = ("vm-out-agent", net::loopback());
    let folder = envoy::folder(name);
    let mut discovery = Discovery::new(&folder, &[group(&probe()), service()])
        .flags(&["--outbound-listeners", &outbound.to_string()]);
    let example = workspace().join("envoy-config/vm/config/gateway.yaml");
    discovery.configure_file("gateway.yaml", &std::fs::read_to_string(example).expect("a shipped file"));
    discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    let mut machine = Machine::new(&folder, "m1", net::loopback()).await;
    machine.report_plaintext(&discovery);
    machine.start_agent().expect("the agent starts");
    let server = discovery.plaintext().to_string();
    let flags = ["--proxy-xds", "--discovery", &server, "--discovery-plaintext", "--namespace", NAMESPACE];
    let identity = ["--group", "gateways", "--service-account", "gateway"];
    let start = |ip: IpAddr| Builder::again(name, ip).args(&flags).args(&identity).start();
    let is_served = async || {
        let listener = SocketAddr::new(outbound, PORT);
        caller::get_host(listener, HOST, "/", &[("Connection", "close")]).await.status == 200
    };

    let gateway = start(net::loopback());
    wait::until_or(|| gateway.log(), is_served).await;
    let (ip, cache) = (gateway.ip, gateway.folder.join("state/xds-cache"));
    let stored = [machine.ip.to_string(), format!("{outbound}_{PORT}"), format!("{HOST}:{PORT}")];
    wait::until("the configuration is stored", async || {
        let found = stored_xds::text(&cache);
        stored.iter().all(|text| found.contains(text))
    })
    .await;
    gateway.signal(Signal::SIGINT);
    gateway.signal(Signal::SIGINT);
    gateway.end().await;
    assert!(!is_served().await);
    discovery.kill().await;
    let gateway = start(ip);
    wait::until_or(|| gateway.log(), is_served).await;
    gateway.signal(Signal::SIGINT);
    gateway.signal(Signal::SIGINT);
    gateway.end().await;
}

/// Locality and weight come from the endpoints of the ServiceEntry, as from a WorkloadEntry.
#[tokio::test]
async fn weights_are_respected() {
    let [light, heavy] = [net::loopback(), net::loopback()].map(|ip| SocketAddr::new(ip, PORT));
    let _light = Application::start("light", light).await;
    let _heavy = Application::start("heavy", heavy).await;
    let mut service = service();
    let spec = service["spec"].as_object_mut().expect("an object");
    spec.remove("workloadSelector");
    spec.insert(
        "endpoints".to_owned(),
        json!([
            {"address": light.ip(), "locality": "eu/a", "weight": 1},
            {"address": heavy.ip(), "locality": "eu/b/1", "weight": 9},
        ]),
    );
    let setup = Setup::start("vm-out-weights", Subscription::delta, &[service]).await;
    setup.until_status(HOST, PORT, 200).await;
    let mut counts = [0_u32; 2];
    for _ in 0..400 {
        let answer = setup.request(HOST, PORT).await;
        assert_eq!(answer.status, 200);
        counts[usize::from(answer.header(MACHINE) == Some("heavy"))] += 1;
    }
    // Nine to one in the mean.
    assert!(counts[0] > 0 && counts[1] > 4 * counts[0], "{counts:?}");
    let clusters = setup.client.envoy.admin("/clusters").await.expect("the admin interface");
    assert!(clusters.contains("::region::eu") && clusters.contains("::sub_zone::1"), "{clusters}");
}
