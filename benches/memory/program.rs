//! What runs in a Pod beside its application, and answers a probe.

use std::any::Any;
use std::net::SocketAddr;

use envoy_bootstrap::bootstrap::FilterCode;
use kit::admin::{Mood, ScriptedAdmin};
use kit::envoy::{self, Envoy, Version, folder};
use kit::pilot_agent::PilotAgent;
use kit::pod::{self, Pod as Configured};
use kit::process::Process;
use kit::sidecar::Builder;
use kit::{net, plain_listener};
use serde_json::{Value, json};

const PATH: &str = "/app-health/app/readyz";
const READY: &str = "/healthz/ready";
/// The port of the plain listener.
const PLAIN: u16 = 8000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    PilotAgent,
    /// The agent for Pods beside an Envoy with a filter; it answers no probes but its own readiness.
    Agent,
    /// The agent for Pods with `--probes agent`.
    AgentWithProbes,
    PlainEnvoy,
    NativeEnvoy,
    WasmEnvoy,
}

/// A running program.
pub(crate) struct Pod {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    pub(crate) path: &'static str,
    _running: Box<dyn Any>,
}

impl Program {
    pub(crate) const ALL: [Self; 6] = [
        Self::PilotAgent,
        Self::Agent,
        Self::AgentWithProbes,
        Self::PlainEnvoy,
        Self::NativeEnvoy,
        Self::WasmEnvoy,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PilotAgent => "pilot-agent",
            Self::Agent => "app-health-agent",
            Self::AgentWithProbes => "app-health-agent with --probes agent",
            Self::PlainEnvoy => "Envoy without a filter",
            Self::NativeEnvoy => "Envoy with native",
            Self::WasmEnvoy => "Envoy with wasm",
        }
    }

    /// Returns the most anonymous memory that one more Pod may cost, in MiB.
    pub(crate) fn bar(self) -> Option<f64> {
        matches!(self, Self::Agent | Self::AgentWithProbes).then_some(1.0)
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(self, app: SocketAddr) -> Pod {
        let table = json!({PATH: {"httpGet": {"port": app.port()}, "timeoutSeconds": 1}});
        match self {
            Self::PilotAgent => {
                let agent = PilotAgent::start(app.ip(), &table, None).await;
                let (process, address) = (agent.process(), agent.address);
                Pod { process, address, path: PATH, _running: Box::new(agent) }
            }
            Self::Agent => agent(app, &[], &table).await,
            Self::AgentWithProbes => agent(app, &["--probes", "agent"], &table).await,
            Self::PlainEnvoy => envoy(app, None, &table).await,
            Self::NativeEnvoy => envoy(app, Some(FilterCode::Module(pod::module())), &table).await,
            Self::WasmEnvoy => envoy(app, Some(FilterCode::File(pod::wasm())), &table).await,
        }
    }
}

async fn agent(app: SocketAddr, flags: &[&str], table: &Value) -> Pod {
    let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
    let ip = net::loopback();
    let builder = Builder::bare_at(&format!("b-node-{ip}"), ip).instance_ip(app.ip());
    let builder = builder.args(flags).env("ISTIO_KUBE_APP_PROBERS", &table.to_string());
    let sidecar = builder.watching(admin.address).start_plain();
    sidecar.until(200, "ready").await;
    let (address, path) =
        if flags.is_empty() { (sidecar.ready_address(), READY) } else { (envoy::probe_listener(ip), PATH) };
    let process = Process::new(sidecar.pid().as_raw().unsigned_abs());
    Pod { process, address, path, _running: Box::new((sidecar, admin)) }
}

async fn envoy(app: SocketAddr, filter: Option<FilterCode>, table: &Value) -> Pod {
    let ip = net::loopback();
    let name = format!("b-node-{ip}");
    let plain = SocketAddr::new(ip, PLAIN);
    let (address, path) = if filter.is_none() { (plain, "/") } else { (envoy::probe_listener(ip), PATH) };
    let bootstrap = plain_listener::render(Configured::bootstrap(&name, ip, table), filter, plain, app);
    let envoy = Envoy::start(Version::Newest, folder(&name), &bootstrap, 1).await;
    Pod { process: Process::new(envoy.pid()), address, path, _running: Box::new(envoy) }
}
