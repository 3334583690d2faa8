//! The command `discovery`: builds the parts, and ends with them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use super::config_dir::{self, Configured};
use super::metrics::Metrics;
use super::pages::Pages;
use super::registry::{self, Parts};
use super::server::{self as ads, Shared};
use super::store::redb::{self, StoreError};
use super::store::{Store, kubernetes};
use crate::config::{DiscoveryConfig, StoreConfig};
use serving::exit::{self, Failure};
use serving::http_server::{self, Ending};
use serving::monitoring::Pending;
use serving::runtime;
use serving::shutdown::Shutdown;

/// Callers of the monitoring port at a time.
const MONITORING_CONNECTIONS: usize = 64;
/// Threads that serve: one more than the registry keeps busy.
const THREADS: usize = 2;
/// Reasons of unreadiness.
const CONFIGURATION: &str = "configuration";
const STORE: &str = "store";
const TERMINATING: &str = "terminating";

/// Serves until SIGTERM or SIGINT, or checks the configuration.
pub fn run(config: DiscoveryConfig) -> Result<(), Failure> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.install_default().map_err(|_| Failure::Broken("there is another crypto provider".to_owned()))?;
    if config.check {
        return check(&config);
    }
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = runtime::new(THREADS)?;
    descriptors(config.limits.max_streams);
    let ended = runtime.block_on(serve(config));
    // What still looks at files need not be waited for.
    runtime.shutdown_background();
    ended
}

/// Each connection takes one, and the soft limit of most systems is 1024.
fn descriptors(wanted: usize) {
    match runtime::raise_descriptors() {
        Ok(limit) if usize::try_from(limit).is_ok_and(|limit| limit < wanted) => {
            warn!(limit, "fewer open descriptors than --max-streams = {wanted}: the hard limit is too low");
        }
        Ok(limit) => info!(limit, "open descriptors"),
        Err(error) => warn!(%error, "the limit of open descriptors stays as it is"),
    }
}

/// Every error of certificates and configuration, a line each, after the warnings, which change nothing.
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
        debug_any,
        trust_domains,
        store,
        namespaces,
        check: _, // it would not have come here
        settings,
        last_endpoint,
        debounce,
        limits,
    } = config;
    let mut shutdown = Shutdown::new().map_err(|error| Failure::Machine(format!("signals: {error}")))?;
    let metrics = Arc::new(Metrics::default());
    let (monitoring, monitoring_address) = bind(monitoring_address)?;
    let secure = match listen {
        None => None,
        Some((address, files)) => Some((bind(address)?, files.watch(metrics.clone())?)),
    };
    let plaintext = plaintext_listen.map(bind).transpose()?;
    let insecure = plaintext.as_ref().is_some_and(|(_, address)| !address.ip().is_loopback());
    if insecure {
        warn!("plaintext on an address that is not loopback: whoever reaches it may say what it likes");
    }

    let pages = Pages {
        debug_any,
        instance: settings.instance.clone(),
        store: store.word(),
        insecure,
        pending: Pending::new([CONFIGURATION, STORE]),
        metrics: metrics.clone(),
    };
    let pending = pages.pending.clone();
    let loaded = Arc::new(OnceLock::new());
    let (watched, leaving) = (loaded.clone(), Ending::default());
    let watch = move |request| pages.clone().answer(request, watched.get().cloned());
    tokio::spawn(http_server::serve(monitoring, None, MONITORING_CONNECTIONS, leaving.clone(), watch));
    info!(address = %monitoring_address, "listening for monitoring");

    let settings_of_store = (settings.instance.clone(), namespaces);
    let opening = open(store, settings_of_store, metrics.clone());
    let (store, configured, stored) = tokio::select! {
        opened = opening => opened?,
        _ = shutdown.signalled() => return Ok(()),
    };
    pending.set(STORE, false);
    let ending = CancellationToken::new();
    let parts = Parts { settings, last_endpoint, debounce, store, configured, metrics: metrics.clone() };
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
        (signal, _) = shutdown.signalled() => info!(signal, "terminating"),
        _ = &mut registered => return Err(Failure::Broken("the registry ended by itself".to_owned())),
    }
    pending.set(TERMINATING, true);
    closing.cancel();
    servers.close();
    tokio::select! {
        () = servers.wait() => {}
        _ = shutdown.signalled() => {}
    }
    // The last batch of the store is written after nobody can add to it.
    ending.cancel();
    let _ = registered.await;
    if let Err(error) = stored.await {
        error!(%error, "store");
    }
    leaving.closing.cancel();
    Ok(())
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = http_server::bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| Failure::Machine(format!("port {address}: {error}")))
}

/// The store and what is configured, once both are there, and the store's task, which ends after the registry.
async fn open(
    store: StoreConfig,
    (instance, namespaces): (String, Vec<String>),
    metrics: Arc<Metrics>,
) -> Result<(Store, watch::Receiver<Configured>, JoinHandle<()>), Failure> {
    match store {
        StoreConfig::Redb { path, config_dir } => {
            let opened = redb::open(path, metrics).await;
            let (store, task) = opened.map_err(|error| match error {
                StoreError::Corrupt(..) | StoreError::Newer(..) => Failure::Data(error.to_string()),
                _ => Failure::Machine(error.to_string()),
            })?;
            let namespaces = namespaces.into_iter().collect::<BTreeSet<_>>();
            Ok((store, config_dir::watch(config_dir, namespaces).await, task))
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
