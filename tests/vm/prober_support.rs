//! Support for tests of an agent that probes an application itself, without a kubelet: starting it,
//! and reading its verdict.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use kit::app::{App, Seen, Step};
use kit::caller;
use kit::net;
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use serde_json::{Value, json};
use tokio::net::TcpStream;

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// The timeout of probes that are not expected to reach it, in seconds.
pub(crate) const TIMEOUT: u64 = 60;

/// A running agent that probes, and the file of its WorkloadGroup.
pub(crate) struct ProbingAgent {
    pub(crate) sidecar: Sidecar,
    pub(crate) file: PathBuf,
}

/// An agent that is not started yet, and the IP address for its application.
pub(crate) struct AgentConfig {
    builder: Builder,
    pub(crate) ip: IpAddr,
}

impl AgentConfig {
    /// Configures an agent without Envoy. `name` is the name of the test.
    pub(crate) fn new(name: &str) -> Self {
        let builder = Builder::bare(name);
        let ip = builder.ip;
        // An address on which no server listens.
        let builder = builder.watching(SocketAddr::new(net::loopback(), 15000));
        Self { builder: builder.args(&["--envoy-readiness", "off"]), ip }
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.builder = self.builder.args(args);
        self
    }

    /// Sets the address of the machine, which is the default target of probes.
    pub(crate) fn targeting(mut self, ip: IpAddr) -> Self {
        self.builder = self.builder.instance_ip(ip);
        self
    }

    /// Writes a WorkloadGroup with this `spec.probe` and starts the agent.
    pub(crate) fn start(self, probe: &Value) -> ProbingAgent {
        let file = self.builder.folder.join("group.yaml");
        write(&file, probe);
        let flag = file.to_str().expect("a path").to_owned();
        ProbingAgent { sidecar: self.builder.args(&["--workload-group", &flag]).start_plain(), file }
    }
}

/// Writes a WorkloadGroup to a new file, and renames it over the old one.
pub(crate) fn write(file: &PathBuf, probe: &Value) {
    let document = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup", "metadata": {"name": "payments"}, "spec": {"probe": probe},
    });
    let new = file.with_extension("new");
    std::fs::write(&new, document.to_string()).expect("a writable folder");
    std::fs::rename(&new, file).expect("a writable folder");
}

impl ProbingAgent {
    /// Requests `/debug/vm-health`.
    pub(crate) async fn view(&self) -> Value {
        let answer = caller::get(self.sidecar.local_address(), "/debug/vm-health", &[]).await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Requests the view until `is_there` accepts it.
    pub(crate) async fn until(&self, what: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        match wait::try_poll(async || Some(self.view().await).filter(&is_there)).await {
            Some(view) => view,
            None => panic!("{what}: {:#}\n{}", self.view().await, self.sidecar.log()),
        }
    }

    /// Waits for the first verdict, and returns `Healthy`, or reason and message.
    pub(crate) async fn verdict(&self) -> String {
        let view = self
            .until("expected a verdict", |view| !matches!(view["state"].as_str(), None | Some("Unknown")))
            .await;
        let word = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
        if word("state") == "Healthy" {
            "Healthy".to_owned()
        } else {
            format!("{}: {}", word("reason"), word("message"))
        }
    }
}

/// A probe whose first result decides, with a timeout that is long enough for a busy machine.
pub(crate) fn single_failure_probe(handler: &str, fields: Value) -> Value {
    json!({ handler: fields, "periodSeconds": 1, "timeoutSeconds": TIMEOUT, "failureThreshold": 1 })
}

/// Returns the verdict on an application that does `steps` with each connection, and the number of
/// its connections. If `expected` is a timeout, the probe's timeout is one second.
pub(crate) async fn verdict_and_connections(
    name: &str,
    handler: &str,
    steps: Vec<Step>,
    expected: &str,
) -> (String, usize) {
    let plan = AgentConfig::new(name);
    let app = App::start(plan.ip, steps).await;
    let mut probe = single_failure_probe(handler, json!({ "port": app.port() }));
    probe["periodSeconds"] = 60.into();
    if expected.starts_with("Timeout") {
        probe["timeoutSeconds"] = 1.into();
    }
    let verdict = plan.start(&probe).verdict().await;
    (verdict, accepted(&app).await.len())
}

/// Returns all connections to the application so far, including those that it has not accepted yet.
pub(crate) async fn accepted(app: &App) -> Vec<Seen> {
    let mut address = app.address;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv6Addr::LOCALHOST.into());
    }
    // Connections are accepted in order, so all earlier ones are known once this one is.
    let last = TcpStream::connect(address).await.expect("the application listens");
    let last = last.local_addr().expect("a connected socket has an address").port();
    let before = wait::try_poll(async || {
        let mut seen = app.seen();
        let position = seen.iter().position(|seen| seen.peer.port() == last)?;
        seen.truncate(position);
        Some(seen)
    });
    before.await.expect("the application accepts a connection")
}
