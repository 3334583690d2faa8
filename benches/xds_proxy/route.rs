//! The ways from a control plane to a client.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use kit::pilot_agent::PilotAgent;
use kit::process::Process;
use kit::sidecar::{Builder, Sidecar};
use kit::vm::documents::{GROUP, NAMESPACE};
use kit::vm::envoy_stream::EnvoyStream;
use kit::vm::push_server::PushServer;
use kit::{envoy, net, wait};
use serde_json::json;
use tokio::time::{Duration, sleep};

use crate::relay;

/// Pause between two looks at the control plane.
const PACE: Duration = Duration::from_micros(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Direct,
    Relay,
    Agent,
    PilotAgent,
}

impl Route {
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::Relay, Self::Agent, Self::PilotAgent];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "a relay of bytes",
            Self::Agent => "agent",
            Self::PilotAgent => "pilot-agent",
        }
    }
}

/// A program between the control plane and the client; it ends on drop.
pub(crate) enum Proxy {
    Agent(Sidecar),
    PilotAgent(PilotAgent),
}

impl Proxy {
    pub(crate) fn process(&self) -> Process {
        match self {
            Self::Agent(sidecar) => Process::new(sidecar.pid().as_raw().unsigned_abs()),
            Self::PilotAgent(agent) => agent.process(),
        }
    }

    fn xds_socket(&self) -> PathBuf {
        match self {
            Self::Agent(sidecar) => sidecar.folder.join("state/xds.sock"),
            Self::PilotAgent(agent) => agent.xds_socket.clone(),
        }
    }
}

/// A control plane, a route, and a client without a stream.
pub(crate) struct Link {
    pub(crate) server: PushServer,
    /// `None` for the direct route and for the relay, which is a part of this process.
    pub(crate) proxy: Option<Proxy>,
    /// Where the client connects; `None` for the direct route.
    socket: Option<PathBuf>,
}

impl Link {
    /// Starts a control plane and what is between it and the client.
    pub(crate) async fn start(name: &str, route: Route) -> Self {
        let server = PushServer::listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).await;
        let proxy = match route {
            Route::Direct | Route::Relay => None,
            Route::Agent => Some(Proxy::Agent(agent(name, server.address))),
            Route::PilotAgent => {
                let agent = PilotAgent::start(net::loopback(), &json!({}), Some(server.address)).await;
                Some(Proxy::PilotAgent(agent))
            }
        };
        let socket = match (route, &proxy) {
            (Route::Relay, _) => {
                let socket = envoy::folder(&format!("{name}-relay")).join("xds.sock");
                relay::start(&socket, server.address).expect("a new folder");
                Some(socket)
            }
            (_, proxy) => proxy.as_ref().map(Proxy::xds_socket),
        };
        if let Some(socket) = &socket {
            wait::until("the socket for Envoy exists", async || socket.exists()).await;
        }
        Self { server, proxy, socket }
    }

    /// Opens the stream of a client, which subscribes to these resources.
    pub(crate) async fn open(&self, type_url: &str, names: &[&str]) -> EnvoyStream {
        match &self.socket {
            Some(socket) => EnvoyStream::open(socket, type_url, names).await,
            None => EnvoyStream::open_tcp(self.server.address, type_url, names).await,
        }
    }

    /// Waits until the control plane has the acknowledgement of its last response.
    pub(crate) async fn acknowledged(&self, type_url: &str) {
        while !self.server.is_acknowledged(type_url) {
            sleep(PACE).await;
        }
    }
}

/// Starts an agent without an Envoy.
fn agent(name: &str, discovery: SocketAddr) -> Sidecar {
    Builder::bare(name)
        .args(&["--no-envoy", "--data-path", "off", "--envoy-readiness", "off"])
        .args(&flags(&discovery.to_string()))
        .start_plain()
}

/// Returns the flags of an agent that serves xDS to Envoy.
pub(crate) fn flags(discovery: &str) -> [&str; 8] {
    let plaintext = "--discovery-plaintext";
    ["--proxy-xds", "--discovery", discovery, plaintext, "--group", GROUP, "--namespace", NAMESPACE]
}

/// Returns the path of the stored configuration below the folder of an agent.
pub(crate) fn stored(folder: &Path) -> PathBuf {
    folder.join("state/xds-cache")
}
