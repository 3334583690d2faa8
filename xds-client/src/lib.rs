//! The stream to a discovery server, which carries health reports and what Envoy gets. With
//! `--proxy-xds` it stands between Envoy and the server: it serves ADS and SDS on a Unix socket. The crate
//! `xds-proxy` decides what is sent; this crate performs the I/O.

pub mod allocator;
mod cache_file;
mod cache_writer;
mod certificates;
mod config;
pub mod connection;
mod event_log;
mod health_io;
mod new_stream;
pub mod secrets;
mod server;
mod stream_status;
mod stream_table;
mod task;
pub mod tls;
pub mod token;
mod type_table;
pub mod upstream;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serving::http_server;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use workload_health::reporter::{Reporter, ReporterSettings};
use xds_proxy::{Proxy, ProxySettings, ProxyView};

use agent_output::exit::Failure;
use agent_state::metrics::Metrics;
use agent_state::state::AgentState;
use cache_file::CacheFile;
use cache_writer::CacheWriter;
use certificates::Certificates;
pub use config::{Accept, DiscoveryConfig, DiscoveryServer, OwnType, ProxyConfig};
use envoy_process::random;
use envoy_process::state_dir;
use health_io::HealthIo;
use secrets::Secrets;
use server::Server;
pub use stream_status::StreamStatus;
pub use stream_table::stream_table;
use task::{ClientTask, Context};
pub use type_table::type_table;
pub use view::to_json;
use workload_prober::HealthHandle;

/// Capacity of the queue of new streams.
const NEW_STREAMS: usize = 4;

pub struct RunningClient {
    pub stream: watch::Receiver<StreamStatus>,
    /// What Envoy gets; `None` without `--proxy-xds`.
    pub xds: Option<watch::Receiver<ProxyView>>,
    pub task: JoinHandle<()>,
    /// Ends the task once the final report is delivered and the last configuration is stored.
    pub stop: CancellationToken,
}

/// Starts the task that opens streams. With a proxy, also binds the sockets and reads the stored
/// configuration. Without `secrets`, the files of the stream's own TLS are served to Envoy.
///
/// # Errors
/// If the certificate files, the state directory or the socket cannot be used.
pub fn start(
    discovery: DiscoveryConfig,
    proxy: Option<ProxyConfig>,
    secrets: Option<Secrets>,
    health: HealthHandle,
    state: Arc<AgentState>,
    metrics: Arc<Metrics>,
) -> Result<RunningClient, Failure> {
    let listeners = proxy.as_ref().map(listen).transpose()?;
    let usage = |error: serving::tls::TlsError| Failure::Usage(error.to_string());
    let certificates = Certificates::new(&discovery).map_err(usage)?;
    let files = discovery.tls.clone().filter(|_| proxy.is_some() && secrets.is_none());
    let files = files.map(secrets::watch_files).transpose().map_err(usage)?;
    let secrets = secrets.or(files);
    let identity = discovery.node.id.clone();
    let file = proxy.as_ref().and_then(|proxy| Some((CacheFile::new(&proxy.state_dir), proxy.max_age?)));
    let stored = file.as_ref().and_then(|(file, max_age)| file.load(&identity, *max_age));
    let max_age = file.as_ref().map(|(_, max_age)| *max_age);
    let cache = file.map(|(file, _)| CacheWriter::new(file, &identity));
    let mut random = random::generator();
    let reporter = ReporterSettings {
        epoch: format!("{:032x}", random.u128(..)),
        heartbeat: discovery.heartbeat,
        istio_heartbeat: discovery.istio_heartbeat,
        final_report_timeout: discovery.final_report_timeout,
    };
    let status = health.subscribe().borrow().status.clone();
    let reporter = match discovery.reports_health {
        true => Reporter::new(reporter, status),
        false => Reporter::silent(reporter, status),
    };
    let settings = ProxySettings {
        identity,
        max_age,
        variant: discovery.variant,
        serves_envoy: proxy.is_some(),
        refuses_remote_wasm: discovery.refuses_remote_wasm,
        own_types: discovery.own.iter().map(|own| own.type_url.to_owned()).collect(),
    };
    let state_machine = Proxy::new(settings, reporter, stored);
    for own in &discovery.own {
        if let Some(stored) = state_machine.stored_own(own.type_url)
            && let Err(error) = (own.accept)(&stored)
        {
            warn!(type_url = own.type_url, error, "stored resource not used");
        }
    }
    let (streams, new_streams) = mpsc::channel(NEW_STREAMS);
    let (views, xds) = watch::channel(state_machine.view(Duration::ZERO));
    let (views, xds) = proxy.map(|_| (views, xds)).unzip();
    let (health, stream, validations) = HealthIo::new(health, discovery.node, !discovery.reports_health);
    let (own, response_limit) = (discovery.own, discovery.response_limit);
    let server_metrics = metrics.clone();
    let context = Context { certificates, cache, random, views, state, metrics, own, response_limit };
    let (task, stop) = (ClientTask::new(state_machine, health, context), CancellationToken::new());
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let Some(listeners) = listeners else { return task.run(new_streams, validations, stopped).await };
        let server = Server::new(streams, secrets, server_metrics);
        tokio::select! {
            () = server.serve(listeners) => {}
            () = task.run(new_streams, validations, stopped) => {}
        }
    });
    Ok(RunningClient { stream, xds, task, stop })
}

/// Binds the sockets that Envoy connects to.
fn listen(config: &ProxyConfig) -> Result<Vec<UnixListener>, Failure> {
    state_dir::create(&config.state_dir).map_err(|error| Failure::CannotWrite(error.to_string()))?;
    let bind = |socket: &PathBuf| {
        let created = socket.parent().map_or(Ok(()), std::fs::create_dir_all);
        created.and_then(|()| http_server::bind_unix(socket)).map_err(|error| {
            let socket = socket.display();
            Failure::Os(format!("unix:{socket}: {error}; it serves xDS; choose another directory"))
        })
    };
    config.sockets.iter().map(bind).collect()
}
