//! The command `webhook`: builds the parts, and ends with them.

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
use injector::settings::{Mode, Settings, SidecarMode};
use metrics::Metrics;
use serving::exit::Failure;
use serving::http_server::{self, Ending};
use serving::monitoring::{self, Pending};
use serving::runtime;
use serving::shutdown::Shutdown;

/// Connections of callers at a time.
const CONNECTIONS: usize = 512;
/// And of those who watch.
const MONITORING_CONNECTIONS: usize = 64;
/// Threads that answer. One is enough for what an API server asks; the other one answers while that one is busy with a handshake.
const THREADS: usize = 2;
/// Native sidecars are on by default from this minor version of Kubernetes 1 on.
const NATIVE_SIDECARS: u32 = 29;
/// How often files are looked at.
const POLL: Duration = Duration::from_secs(5);

/// Reasons of unreadiness.
const TERMINATING: &str = "terminating";

/// Answers reviews until SIGTERM or SIGINT.
pub fn run(config: WebhookConfig) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).init();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.install_default().map_err(|_| Failure::Broken("there is another crypto provider".to_owned()))?;
    let runtime = runtime::new(THREADS)?;
    let ended = runtime.block_on(serve(config));
    // What still looks at files or asks the API server need not be waited for.
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
                let text = "no API server: without one a certificate of our own is of no use; name one with --cert-dir";
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
    info!(%address, %monitoring_address, "serving");
    tokio::select! {
        (signal, _) = shutdown.signalled() => info!(signal, "terminating"),
        _ = &mut serving => return Err(Failure::Broken("the server ended by itself".to_owned())),
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

/// The API server of the cluster that this runs in, or of the kubeconfig.
async fn cluster_client((namespace, configuration): (String, String)) -> Option<Cluster> {
    let config = kube::Config::infer().await.inspect_err(|error| info!(%error, "no API server")).ok()?;
    let client = Client::try_from(config).inspect_err(|error| warn!(%error, "no API server")).ok()?;
    Some(Cluster::new(client, namespace, configuration))
}

/// On an older API server, Pods with a native sidecar would hang in their init containers for ever.
async fn native_is_known(settings: &Settings, cluster: Option<&Cluster>) -> Result<(), Failure> {
    let Some(cluster) =
        cluster.filter(|_| settings.mode == Mode::Auto && settings.sidecar_mode == SidecarMode::Native)
    else {
        return Ok(());
    };
    match cluster.minor_version().await {
        Ok(Some(minor)) if minor < NATIVE_SIDECARS => Err(Failure::Settings(format!(
            "--sidecar-mode = native: needs Kubernetes 1.{NATIVE_SIDECARS}, and this is 1.{minor}; use classic"
        ))),
        Ok(_) => Ok(()),
        Err(error) => {
            warn!(%error, "the API server does not say its version");
            Ok(())
        }
    }
}
