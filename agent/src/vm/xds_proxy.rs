//! Stands between Envoy and the control plane: serves ADS and SDS on a Unix socket, and passes ADS on
//! to the discovery servers. The crate `xds-proxy` decides what is sent; this module performs the I/O.

mod cache_file;
mod cache_writer;
mod event_log;
mod secrets;
mod server;
mod task;
mod type_table;
pub(super) mod upstream;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serving::http_server;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use xds_proxy::{Proxy, ProxySettings, ProxyView};

use crate::exit::Failure;
use crate::metrics::Metrics;
use crate::random;
use crate::state::AgentState;
use crate::state_dir;
use crate::vm::report::{Certificates, DiscoveryConfig, HealthLink};
use cache_file::CacheFile;
use cache_writer::CacheWriter;
use task::{ProxyTask, Surroundings};
pub use type_table::type_table;
pub use view::to_json;

/// Capacity of the queue of new streams.
const NEW_STREAMS: usize = 4;
/// File name in the state directory.
const SOCKET: &str = "xds.sock";

/// Configuration of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Absolute path of the directory with the socket and the stored configuration.
    pub state_dir: PathBuf,
    /// `None` disables the stored configuration.
    pub max_age: Option<Duration>,
}

impl ProxyConfig {
    /// Returns the path of the socket that Envoy connects to.
    pub fn socket(&self) -> PathBuf {
        self.state_dir.join(SOCKET)
    }
}

/// Encodes the node of the agent, whose fields override those of Envoy's node.
pub(super) type EncodeNode = Box<dyn Fn() -> Bytes + Send>;

pub(super) struct RunningProxy {
    /// Health reporters attach here.
    pub(super) links: mpsc::Sender<HealthLink>,
    pub(super) view: watch::Receiver<ProxyView>,
    pub(super) task: JoinHandle<()>,
    /// Ends the task once the last configuration is stored.
    pub(super) stop: CancellationToken,
}

/// Binds the socket, reads the stored configuration and starts the proxy.
///
/// # Errors
/// If the state directory or the socket cannot be used.
pub(super) fn start(
    config: &ProxyConfig,
    discovery: &DiscoveryConfig,
    encode_node: EncodeNode,
    state: Arc<AgentState>,
    metrics: Arc<Metrics>,
) -> Result<RunningProxy, Failure> {
    state_dir::create(&config.state_dir).map_err(|error| Failure::CannotWrite(error.to_string()))?;
    let socket = config.socket();
    let listener = http_server::bind_unix(&socket).map_err(|error| {
        Failure::Os(format!("unix:{}: {error}; it serves xDS; choose another --state-dir", socket.display()))
    })?;
    let usage = |error: serving::tls::TlsError| Failure::Usage(error.to_string());
    let certificates = Certificates::new(discovery).map_err(usage)?;
    let secrets = secrets::watch(discovery.tls.clone()).map_err(usage)?;
    let identity = discovery.node.id.clone();
    let file = CacheFile::new(&config.state_dir);
    let stored = config.max_age.and_then(|limit| file.load(&identity, limit));
    let cache = config.max_age.map(|_| CacheWriter::new(file, &identity));
    let settings = ProxySettings { identity, max_age: config.max_age };
    let proxy = Proxy::new(settings, stored);
    let (streams, new_streams) = mpsc::channel(NEW_STREAMS);
    let (links, new_links) = mpsc::channel(1);
    let (views, view) = watch::channel(proxy.view(Duration::ZERO));
    let random = random::generator();
    let surroundings = Surroundings { certificates, cache, encode_node, random, views, state, metrics };
    let (task, stop) = (ProxyTask::new(proxy, surroundings), CancellationToken::new());
    let stopped = stop.clone();
    let serving = server::serve(listener, streams, secrets);
    let task = tokio::spawn(async move {
        tokio::select! {
            () = serving => {}
            () = task.run(new_streams, new_links, stopped) => {}
        }
    });
    Ok(RunningProxy { links, view, task, stop })
}
