//! What answers the probes of a batch: an Envoy with the filter, or an agent.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use kit::envoy::{self, Envoy, Version};
use kit::pilot_agent::PilotAgent;
use kit::pod::{self, Form, Pod, SOURCE};
use kit::{agent, plain_listener, wait};
use serde_json::{Map, Value};
use tokio::net::TcpStream;
use tokio::process::Child;

/// A process that answers probes.
pub enum Answering {
    Envoy(Envoy),
    /// Killed on drop.
    Agent(Child),
    PilotAgent(PilotAgent),
}

/// Starts what the environment selects for a Pod at `ip` with this prober table, and returns the address of
/// its probe listener. Envoy is as shipped, without the rate limit.
pub async fn start(ip: IpAddr, table: Map<String, Value>) -> (Answering, SocketAddr) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("batch-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    match pod::form() {
        Form::Wasm | Form::Native => start_envoy(&name, ip, table).await,
        Form::Agent => start_agent(&name, ip, table).await,
        Form::PilotAgent => {
            let agent = PilotAgent::start(ip, &Value::Object(table), None).await;
            let listener = agent.address;
            (Answering::PilotAgent(agent), listener)
        }
    }
}

impl Answering {
    pub async fn stop(self) {
        if let Self::Envoy(envoy) = self {
            envoy.stop().await;
        }
    }
}

async fn start_envoy(name: &str, ip: IpAddr, table: Map<String, Value>) -> (Answering, SocketAddr) {
    let mut bootstrap = Pod::bootstrap(name, ip, &Value::Object(table));
    if ip.is_ipv6() {
        // Other ports of the bootstrap may be in use on `::1`.
        bootstrap.probe_address = SocketAddr::new(ip, 32_020);
        bootstrap.stats_address = None;
    }
    let mut rendered = serde_json::from_str(&bootstrap.render()).expect("a bootstrap is JSON");
    plain_listener::raise_rate_limit(&mut rendered);
    let envoy = Envoy::start(Version::Newest, envoy::folder(name), &rendered, 1).await;
    (Answering::Envoy(envoy), bootstrap.probe_address)
}

async fn start_agent(name: &str, ip: IpAddr, table: Map<String, Value>) -> (Answering, SocketAddr) {
    let folder = envoy::folder(name);
    let listener = SocketAddr::new(ip, if ip.is_ipv6() { 32_020 } else { 15_020 });
    let ready = SocketAddr::new(ip, listener.port() + 1);
    let unix = |name: &str| format!("unix:{}", folder.join(name).display());
    let mut command = agent::command(&["run", "--no-envoy", "--probes", "agent", "--log-level", "error"]);
    command.arg("--probe-address").arg(listener.to_string()).arg("--ready-address").arg(ready.to_string());
    command.arg("--local-address").arg(unix("local.sock")).arg("--admin").arg(unix("admin.sock"));
    command.arg("--state-dir").arg(folder.join("state")).arg("--instance-ip").arg(ip.to_string());
    command.arg("--source-bind").arg(if ip.is_ipv4() == SOURCE.is_ipv4() { "on" } else { "off" });
    command.env("ISTIO_KUBE_APP_PROBERS", Value::Object(table).to_string());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::inherit());
    let child = command.spawn().expect("the agent starts");
    wait::until("the agent listens", async || TcpStream::connect(listener).await.is_ok()).await;
    (Answering::Agent(child), listener)
}
