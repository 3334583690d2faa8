//! The task with a scripted control plane. Time stands still unless a test advances it.

mod envoy;
mod failures;
mod health;
mod server;
mod tls;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use address::Endpoint;
use agent_state::awaited_pids::AwaitedPids;
use hyper::header::HeaderMap;
use readiness::{Dynamic, Policy};
use serde_json::{Value, json};
use tokio::time::advance;
use tracing::subscriber::DefaultGuard;
use workload_prober::{HealthConfig, TargetRules};
use xds::{Node, Request, Variant};

use super::*;
use crate::tls::San;
use crate::{DiscoveryConfig, DiscoveryServer, ProxyConfig, RunningClient, StreamStatus};
use server::{Server, Stream};

const FINAL_REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// A client without a workload; dropping it ends its task.
struct Agent {
    client: RunningClient,
    metrics: Arc<Metrics>,
    log: Log,
    state: Arc<AgentState>,
    _logs: DefaultGuard,
    _frozen: Option<Frozen>,
}

/// Paused time advances by itself while the runtime is idle, except during a blocking task. Connections are
/// real, and a timeout could be first.
struct Frozen {
    _until_dropped: std::sync::mpsc::Sender<()>,
}

impl Frozen {
    fn new() -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        tokio::task::spawn_blocking(move || receiver.recv());
        Self { _until_dropped: sender }
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.client.task.abort();
    }
}

/// Returns the configuration of a client of this server in plaintext.
fn config(endpoint: Endpoint) -> DiscoveryConfig {
    let metadata = json!({ "NAMESPACE": "shop" });
    let san = San::new("localhost", "localhost").unwrap();
    DiscoveryConfig {
        servers: vec![DiscoveryServer { authority: "discovery.test:15012".to_owned(), endpoint, san }],
        tls: None,
        token: None,
        headers: HeaderMap::new(),
        reports_health: true,
        variant: Variant::Sotw,
        node: Node {
            id: "sidecar~10.0.0.7".to_owned(),
            metadata,
            program: "app-health-agent".to_owned(),
            ..Node::default()
        },
        heartbeat: Duration::from_secs(3600),
        istio_heartbeat: None,
        final_report_timeout: FINAL_REPORT_TIMEOUT,
        own: Vec::new(),
        response_limit: DiscoveryConfig::RESPONSE_LIMIT,
        refuses_remote_wasm: false,
    }
}

impl Agent {
    fn start(server: &Server) -> Self {
        Self::start_with(config(Endpoint::Ip(server.address())), None)
    }

    fn start_with(config: DiscoveryConfig, proxy: Option<ProxyConfig>) -> Self {
        let frozen = Some(Frozen::new());
        let log = Log::default();
        let writer = log.clone();
        let text = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        let logs = tracing::subscriber::set_default(text.finish());
        let metrics = Arc::new(Metrics::new());
        let policy =
            Policy { dynamic: Dynamic::Off, data_path: false, child: false, drain_keeps_ready: false };
        let state = Arc::new(AgentState::new(policy, metrics.clone()));
        let health = HealthConfig {
            probe: None,
            is_reported: true,
            group: None,
            target: TargetRules { instance_ip: [127, 0, 0, 1].into(), capture: false, allow_remote: false },
            rules: Default::default(),
            envoy_readiness: false,
            exec_environment: Vec::new(),
        };
        let (health, _) =
            workload_prober::start(health, state.clone(), AwaitedPids::default(), metrics.clone());
        let client =
            crate::start(config, proxy, None, health, state.clone(), metrics.clone()).expect("a socket");
        Self { client, metrics, log, state, _logs: logs, _frozen: frozen }
    }

    /// Waits until the status of the stream is as wanted, and returns it.
    async fn status(&mut self, is_wanted: impl FnMut(&StreamStatus) -> bool) -> StreamStatus {
        self.client.stream.wait_for(is_wanted).await.expect("the task runs").clone()
    }

    /// Waits until the stream, or the attempt to open one, has failed, and returns why.
    async fn failure(&mut self) -> String {
        let status = self.status(|status| status.connected.is_none() && status.error.is_some()).await;
        status.error.unwrap_or_default()
    }

    fn log(&self) -> String {
        String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap()
    }

    fn has_metric(&self, line: &str) -> bool {
        self.metrics.encode().lines().any(|found| found == line)
    }
}

fn node(request: &Request) -> Node {
    Node::parse(request.node.as_ref().expect("a node"), xds::json::decode_struct).expect("a node")
}

/// Returns the metadata of a request's node.
fn metadata(request: &Request) -> Value {
    node(request).metadata
}

/// Returns the resource of a hello message.
fn hello(content: &Value) -> Bytes {
    xds::any("type.googleapis.com/google.protobuf.Struct", &xds::json::encode_struct(content))
}

/// Returns an empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xds-client-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}
