//! The subcommand `discovery`: starts the servers, the registry and the store, and shuts them down.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::level_filters::LevelFilter;
use tracing::{error, info, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::exit;
use discovery::entries::Settings;
use discovery::objects::LastEndpoint;
use discovery_server::config_dir::{self, Configured, WatchSettings};
use discovery_server::debug_endpoints::MonitoringHandlers;
use discovery_server::metrics::Metrics;
use discovery_server::page::StatusPage;
use discovery_server::registry::{self, RegistryConfig};
use discovery_server::server::{self as ads, ServerLimits, Shared};
use discovery_server::store::redb::{self, StoreError};
use discovery_server::store::{Store, kubernetes};
use discovery_server::tls::TlsFiles;
use serving::exit::Failure;
use serving::http_server::{self, Plaintext, Stages};
use serving::log_targets::LogTargets;
use serving::monitoring::{self as monitoring_port, Pending};
use serving::runtime;
use serving::shutdown::Shutdown;
use serving::tls;

/// The crate of the server, as the targets of log lines name it.
const TARGETS: &[(&str, &str)] = &[("discovery_server", "app_health::discovery")];
/// Number of tokio worker threads: one for the registry task and one for the streams.
const THREADS: usize = 2;
/// Names of the readiness conditions.
const CONFIGURATION: &str = "configuration";
const STORE: &str = "store";
const TERMINATING: &str = "terminating";

/// Configuration of `discovery`.
#[derive(Debug)]
pub struct DiscoveryConfig {
    /// Listener with mutual TLS.
    pub listen: Option<(SocketAddr, TlsFiles)>,
    pub plaintext_listen: Option<SocketAddr>,
    pub monitoring_address: SocketAddr,
    /// Whether /debug is allowed for clients on other machines.
    pub debug_allow_remote: bool,
    /// Contains at least one trust domain.
    pub trust_domains: Vec<String>,
    pub store: StoreConfig,
    /// Namespaces to serve; empty means all.
    pub namespaces: Vec<String>,
    /// Whether to validate the configuration and exit.
    pub check: bool,
    pub settings: Settings,
    /// Default for services that do not set it.
    pub last_endpoint: LastEndpoint,
    /// Address of the listeners for outbound requests; `None` if none are served.
    pub outbound_listeners: Option<IpAddr>,
    /// Namespaces whose services may be exported; `None` means all.
    pub export_namespaces: Option<BTreeSet<String>>,
    /// Debounce time, and its maximum.
    pub debounce: (Duration, Duration),
    /// Limits on connections and streams.
    pub limits: ServerLimits,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreConfig {
    Redb {
        path: PathBuf,
        config_dir: PathBuf,
        /// Whether an empty directory means that there are no objects.
        allow_empty: bool,
    },
    Kubernetes {
        namespace: String,
        /// Writes per second.
        qps: NonZeroU32,
    },
}

impl StoreConfig {
    /// Value of `--store`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Redb { .. } => "redb",
            Self::Kubernetes { .. } => "kubernetes",
        }
    }
}

/// This crate logs a warning about each connection that exceeds a limit of HTTP/2, as often as a client
/// likes.
const HTTP2: &str = "h2";

/// Serves until SIGTERM or SIGINT; with `--check`, validates the configuration and exits.
pub fn run(config: DiscoveryConfig) -> Result<(), Failure> {
    tls::install_crypto()?;
    if config.check {
        return check(&config);
    }
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .map_event_format(|format| LogTargets { format, names: TARGETS })
        .finish()
        .with(Targets::new().with_default(LevelFilter::INFO).with_target(HTTP2, LevelFilter::OFF))
        .init();
    runtime::block_on(Builder::new_multi_thread().worker_threads(THREADS), async {
        let wanted = config.limits.max_streams;
        let max_streams = runtime::raise_descriptors(wanted, &format!("--max-streams = {wanted} needs"));
        serve(DiscoveryConfig { limits: ServerLimits { max_streams, ..config.limits }, ..config }).await
    })
}

/// Prints warnings to stderr and returns all errors of the certificates and the configuration, one
/// per line.
fn check(config: &DiscoveryConfig) -> Result<(), Failure> {
    let tls = config.listen.as_ref().map(|(_, files)| files.load());
    let mut errors: Vec<String> =
        tls.and_then(Result::err).map(|error| error.to_string()).into_iter().collect();
    if let StoreConfig::Redb { config_dir, .. } = &config.store {
        let configured = config_dir::check(config_dir);
        for warning in configured.warnings {
            exit::stderr_line(&format!("warning: {warning}"));
        }
        errors.extend(configured.errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(Failure::Data(errors.join("\n"))) }
}

async fn serve(config: DiscoveryConfig) -> Result<(), Failure> {
    let DiscoveryConfig {
        listen,
        plaintext_listen,
        monitoring_address,
        debug_allow_remote,
        trust_domains,
        store,
        namespaces,
        check: _, // `run` has returned already
        settings,
        last_endpoint,
        outbound_listeners,
        export_namespaces,
        debounce,
        limits,
    } = config;
    let mut shutdown =
        Shutdown::new().map_err(|error| Failure::Os(format!("cannot install signal handlers: {error}")))?;
    let metrics = Arc::new(Metrics::default());
    let (monitoring, monitoring_address) = bind(monitoring_address)?;
    let secure = match listen {
        None => None,
        Some((address, files)) => Some((bind(address)?, files.watch(metrics.clone())?)),
    };
    let plaintext = plaintext_listen.map(bind).transpose()?;
    let insecure = plaintext.as_ref().is_some_and(|(_, address)| !address.ip().is_loopback());
    if insecure {
        warn!("--plaintext-listen is not a loopback address: clients are not authenticated");
    }

    let leaving = Stages::default();
    let (failed_mount, failed_mount_receiver) = watch::channel(None);
    let handlers = MonitoringHandlers {
        debug_allow_remote,
        instance: settings.instance.clone(),
        store: store.name(),
        insecure,
        pending: Pending::new([CONFIGURATION, STORE]),
        failed_mount: failed_mount_receiver,
        metrics: metrics.clone(),
        page: StatusPage::new(settings.instance.clone(), store.name(), leaving.closing.clone()),
    };
    let pending = handlers.pending.clone();
    let loaded = Arc::new(OnceLock::new());
    let watched = loaded.clone();
    let watch = move |request| handlers.clone().handle(request, watched.get().cloned());
    let server = monitoring_port::server(metrics.servers.clone());
    tokio::spawn(http_server::serve(monitoring, Plaintext, server, leaving.clone(), watch));
    info!(address = %monitoring_address, "listening for monitoring");

    let settings_of_store = (settings.instance.clone(), namespaces);
    let opening = open(store, settings_of_store, metrics.clone(), &failed_mount);
    let (store, configured, stored) = tokio::select! {
        opened = opening => opened?,
        _ = shutdown.signalled() => return Ok(()),
    };
    pending.set(STORE, false);
    let ending = CancellationToken::new();
    let parts = RegistryConfig {
        settings,
        last_endpoint,
        outbound_listeners,
        export_namespaces,
        debounce,
        store,
        configured,
        metrics: metrics.clone(),
    };
    let (registry, mut registered) = registry::start(parts, ending.clone());
    pending.set(CONFIGURATION, false);
    let shared = Shared::new(registry.clone(), metrics, trust_domains, limits);
    let _ = loaded.set((registry, shared.clone()));

    let (closing, servers) = (CancellationToken::new(), TaskTracker::new());
    if let Some(((listener, address), tls)) = secure {
        servers.spawn(ads::serve(listener, Some(tls), shared.clone(), closing.clone()));
        info!(%address, "listening for xDS over mutual TLS");
    }
    if let Some((listener, address)) = plaintext {
        servers.spawn(ads::serve(listener, None, shared, closing.clone()));
        info!(%address, "listening for xDS in plaintext");
    }
    tokio::select! {
        (signal, _) = shutdown.signalled() => info!(signal, "shutdown started"),
        _ = &mut registered => return Err(Failure::Software("the registry task ended unexpectedly".to_owned())),
    }
    pending.set(TERMINATING, true);
    closing.cancel();
    servers.close();
    tokio::select! {
        () = servers.wait() => {}
        _ = shutdown.signalled() => {}
    }
    // The registry ends only after all streams have, so that the store's last batch contains every
    // write.
    ending.cancel();
    let _ = registered.await;
    if let Err(error) = stored.await {
        error!(%error, "store task failed");
    }
    leaving.closing.cancel();
    Ok(())
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = http_server::bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| Failure::Os(format!("cannot listen on {address}: {error}")))
}

/// Opens the store and waits for the configuration. Returns both and the store's task, which ends
/// after the registry.
async fn open(
    store: StoreConfig,
    (instance, namespaces): (String, Vec<String>),
    metrics: Arc<Metrics>,
    failed_mount: &watch::Sender<Option<String>>,
) -> Result<(Store, watch::Receiver<Configured>, JoinHandle<()>), Failure> {
    match store {
        StoreConfig::Redb { path, config_dir: directory, allow_empty } => {
            let opened = redb::open(path, metrics).await;
            let (store, task) = opened.map_err(|error| match error {
                StoreError::Corrupt(..) | StoreError::Newer(..) => Failure::Data(error.to_string()),
                _ => Failure::Os(error.to_string()),
            })?;
            let namespaces = namespaces.into_iter().collect::<BTreeSet<_>>();
            let has_stored = !store.stored.is_empty();
            let settings = WatchSettings { directory, namespaces, allow_empty, has_stored };
            Ok((store, config_dir::watch(settings, failed_mount).await, task))
        }
        StoreConfig::Kubernetes { namespace, qps } => {
            let client = kubernetes::client().await.map_err(Failure::Unavailable)?;
            let settings = kubernetes::Settings { instance, namespace, namespaces, per_second: qps };
            let kubernetes::Opened { store, configured, task } =
                kubernetes::open(client, settings, metrics).await;
            Ok((store, configured, task))
        }
    }
}
