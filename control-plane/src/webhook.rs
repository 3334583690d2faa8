//! The command `webhook`: starts its tasks and stops them on shutdown.

pub mod authority;
mod certificates;
pub mod cluster;
pub mod exchange;
pub mod metrics;
pub mod review;
mod template;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use kube::Client;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config::{Certificates, WebhookConfig};
use cluster::Cluster;
use exchange::Exchange;
use injector::settings::{InjectionMode, Settings, SidecarMode};
use metrics::Metrics;
use serving::exit::Failure;
use serving::http_server::{self, Ending};
use serving::monitoring::{self, Pending};
use serving::runtime;
use serving::shutdown::Shutdown;

/// Maximum number of connections of API servers.
const CONNECTIONS: usize = 512;
/// Maximum number of connections to the monitoring port.
const MONITORING_CONNECTIONS: usize = 64;
/// Worker threads. One is enough for the load of an API server; the second one answers while the
/// first is busy with a TLS handshake.
const THREADS: usize = 2;
/// First minor version of Kubernetes 1 in which native sidecars are enabled by default.
const NATIVE_SIDECARS: u32 = 29;
/// How often files are checked for changes.
const POLL: Duration = Duration::from_secs(5);

/// Reason for not being ready during shutdown.
const TERMINATING: &str = "terminating";

/// Serves the webhook until SIGTERM or SIGINT.
pub fn run(config: WebhookConfig) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).init();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider
        .install_default()
        .map_err(|_| Failure::Broken("another TLS crypto provider is already installed".to_owned()))?;
    let runtime = runtime::new(THREADS)?;
    let ended = runtime.block_on(serve(config));
    // Background tasks that watch files or wait for the API server are not awaited.
    runtime.shutdown_background();
    ended
}

async fn serve(config: WebhookConfig) -> Result<(), Failure> {
    let WebhookConfig {
        settings,
        template,
        address,
        monitoring_address,
        certificates,
        cluster,
        shutdown_grace,
    } = config;
    let mut shutdown = Shutdown::new().map_err(|error| Failure::Machine(format!("signals: {error}")))?;
    let bind = |address| {
        http_server::bind(address).map_err(|error| Failure::Machine(format!("port {address}: {error}")))
    };
    let (listener, monitoring) = (bind(address)?, bind(monitoring_address)?);
    let metrics = Arc::new(Metrics::default());
    let pending = Pending::new([certificates::CERTIFICATE]);
    let ending = Ending::default();

    let (page, reasons) = (metrics.clone(), pending.clone());
    let watch = move |request| {
        let answer = monitoring::answer(&request, &reasons, || page.text());
        async move { answer }
    };
    tokio::spawn(http_server::serve(monitoring, None, MONITORING_CONNECTIONS, Ending::default(), watch));

    let cluster_client = cluster_client(cluster).await;
    native_is_known(&settings, cluster_client.as_ref()).await?;
    let tls = match certificates {
        Certificates::Files(files) => certificates::from_files(files, &metrics, &pending)?,
        Certificates::SelfSigned(names) => {
            let cluster = cluster_client.ok_or_else(|| {
                let text = "no API server found, which a self-signed certificate requires; set --cert-dir to use your own certificate";
                Failure::Unavailable(text.to_owned())
            })?;
            let own = certificates::self_signed(cluster, names, &metrics, &pending);
            tokio::select! {
                tls = own => tls?,
                _ = shutdown.signalled() => return Ok(()),
            }
        }
    };
    let settings = Arc::new(ArcSwap::from_pointee(settings));
    if let Some(template) = template {
        tokio::spawn(template::watch(template, settings.clone(), metrics.clone()));
    }
    let exchange = Exchange::new(settings, metrics);
    let answer = move |request| exchange.clone().answer(request);
    let mut serving =
        tokio::spawn(http_server::serve(listener, Some(tls), CONNECTIONS, ending.clone(), answer));
    info!(%address, %monitoring_address, "webhook started");
    tokio::select! {
        (signal, _) = shutdown.signalled() => info!(signal, "signal received, shutting down"),
        _ = &mut serving => return Err(Failure::Broken("the server ended unexpectedly".to_owned())),
    }
    pending.set(TERMINATING, true);
    ending.leaving.cancel();
    tokio::select! {
        () = sleep(shutdown_grace) => {}
        _ = shutdown.signalled() => {}
    }
    ending.closing.cancel();
    serving.await.map_err(|error| Failure::Broken(format!("server: {error}")))
}

/// Connects to the API server of this cluster, or of the kubeconfig.
async fn cluster_client((namespace, configuration): (String, String)) -> Option<Cluster> {
    let config =
        kube::Config::infer().await.inspect_err(|error| info!(%error, "no API server found")).ok()?;
    let client = Client::try_from(config)
        .inspect_err(|error| warn!(%error, "creating the API server client failed"))
        .ok()?;
    Some(Cluster::new(client, namespace, configuration))
}

/// Rejects native sidecars on an older API server: Pods would stay in their init containers
/// forever.
async fn native_is_known(settings: &Settings, cluster: Option<&Cluster>) -> Result<(), Failure> {
    let Some(cluster) = cluster
        .filter(|_| settings.mode == InjectionMode::Auto && settings.sidecar_mode == SidecarMode::Native)
    else {
        return Ok(());
    };
    match cluster.minor_version().await {
        Ok(Some(minor)) if minor < NATIVE_SIDECARS => Err(Failure::Settings(format!(
            "--sidecar-mode = native: requires Kubernetes 1.{NATIVE_SIDECARS}, but this cluster is 1.{minor}; use classic"
        ))),
        Ok(_) => Ok(()),
        Err(error) => {
            warn!(%error, "reading the version of the API server failed");
            Ok(())
        }
    }
}
