//! The command `webhook`: starts its tasks and stops them on shutdown.

pub mod api_client;
pub mod authority;
mod certificates;
pub mod handler;
mod json_values;
pub mod metrics;
pub mod review;
mod review_log;
mod x509;

use std::io;
use std::sync::Arc;

use kube::Client;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config::{Certificates, TemplateFile, WebhookConfig};
use api_client::ApiClient;
use handler::Handler;
use injector::settings::{InjectionMode, Settings, SidecarMode};
use metrics::Metrics;
use serving::exit::Failure;
use serving::http_server::{self, Limits, Plaintext, Rate, Server, Stages, Tls};
use serving::monitoring::{self as monitoring_port, Pending};
use serving::runtime;
use serving::shutdown::Shutdown;
use serving::tls;
use serving::watched::Watched;

/// Limits of the port for reviews. An API server opens a connection for each concurrent review, and keeps
/// 25 idle ones. The share of a source limits its memory: a connection needs 27 KiB. The rate limits the CPU
/// time of TLS handshakes.
const LIMITS: Limits = Limits {
    connections: 1024,
    source_connections: 512,
    source_rate: Some(Rate { per_second: 200, burst: 640 }),
    ..Limits::KEEP_ALIVE
};
/// Those of the connections that only the API server gets, if it is known by address or certificate. It
/// processes at most 600 requests at a time by default.
const API_SERVER_CONNECTIONS: usize = 640;
/// Worker threads. One is enough for the load of an API server; the second one answers while the
/// first is busy with a TLS handshake.
const THREADS: usize = 2;
/// First minor version of Kubernetes 1 in which native sidecars are enabled by default.
const NATIVE_SIDECARS: u32 = 29;

/// Reason for not being ready during shutdown.
const TERMINATING: &str = "terminating";

/// Serves the webhook until SIGTERM or SIGINT.
pub fn run(config: WebhookConfig) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).init();
    tls::install_crypto()?;
    runtime::block_on(Builder::new_multi_thread().worker_threads(THREADS), serve(config))
}

async fn serve(config: WebhookConfig) -> Result<(), Failure> {
    let WebhookConfig {
        settings,
        template,
        address,
        monitoring_address,
        certificates,
        api_server_addresses,
        namespace,
        webhook_configuration,
        shutdown_grace,
    } = config;
    let mut shutdown = Shutdown::new().map_err(|error| Failure::Os(format!("signals: {error}")))?;
    let bind =
        |address| http_server::bind(address).map_err(|error| Failure::Os(format!("port {address}: {error}")));
    let (listener, monitoring) = (bind(address)?, bind(monitoring_address)?);
    let connections = runtime::raise_descriptors(LIMITS.connections, "the webhook needs");
    let metrics = Arc::new(Metrics::default());
    let pending = Pending::new([certificates::CERTIFICATE]);
    let stages = Stages::default();

    let (page, reasons) = (metrics.clone(), pending.clone());
    let watch = move |request| {
        let answer = monitoring_port::answer(&request, &reasons, || page.text());
        async move { answer }
    };
    let server = monitoring_port::server(metrics.servers.clone());
    tokio::spawn(http_server::serve(monitoring, Plaintext, server, Stages::default(), watch));

    let is_api_server_known = certificates.client_ca().is_some() || !api_server_addresses.is_empty();
    let limits = limits(connections, is_api_server_known);
    let api_client = api_client(&namespace, webhook_configuration).await;
    check_native_sidecars(&settings, api_client.as_ref()).await?;
    let tls = match certificates {
        Certificates::Files(files) => certificates::from_files(files, &metrics, &pending)?,
        Certificates::SelfSigned(names) => {
            let client = api_client.ok_or_else(|| {
                let text = "no API server found, which a self-signed certificate requires; set --cert-dir to use your own certificate";
                Failure::Unavailable(text.to_owned())
            })?;
            let own = certificates::self_signed(client, names, &metrics, &pending);
            tokio::select! {
                tls = own => tls?,
                _ = shutdown.signalled() => return Ok(()),
            }
        }
    };
    let settings = match template {
        Some(template) => watch_template(template, settings, metrics.clone()),
        None => watch::channel(Arc::new(settings)).1,
    };
    let servers = metrics.servers.clone();
    let handler = Handler::new(settings, metrics, is_api_server_known);
    let answer = move |request| handler.clone().answer(request);
    let server = Server { name: "webhook", paths: &[handler::PATH], limits, metrics: servers };
    let tls = Tls::new(tls).with_trusted(api_server_addresses);
    let mut serving = tokio::spawn(http_server::serve(listener, tls, server, stages.clone(), answer));
    info!(%address, %monitoring_address, "webhook started");
    tokio::select! {
        (signal, _) = shutdown.signalled() => info!(signal, "signal received, shutting down"),
        _ = &mut serving => return Err(Failure::Software("the server ended unexpectedly".to_owned())),
    }
    pending.set(TERMINATING, true);
    stages.leaving.cancel();
    tokio::select! {
        () = sleep(shutdown_grace) => {}
        _ = shutdown.signalled() => {}
    }
    stages.closing.cancel();
    serving.await.map_err(|error| Failure::Software(format!("server: {error}")))
}

/// Returns the limits if there are descriptors for this number of connections, of which each part is the same
/// share as of all.
fn limits(connections: usize, is_api_server_known: bool) -> Limits {
    let share = |part: usize| connections * part / LIMITS.connections;
    let source_connections = share(LIMITS.source_connections);
    let trusted_connections = if is_api_server_known { share(API_SERVER_CONNECTIONS) } else { 0 };
    Limits { connections, source_connections, trusted_connections, ..LIMITS }
}

/// Replaces the settings when the content of the template's file changes.
fn watch_template(
    file: TemplateFile,
    settings: Settings,
    metrics: Arc<Metrics>,
) -> watch::Receiver<Arc<Settings>> {
    let TemplateFile { path, text, .. } = file.clone();
    let read = move || std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let parse = move |text: &String| file.settings(text).map_err(|error| error.to_string());
    let on_change = move |settings: Option<&Settings>| metrics.reloaded("template", settings.is_some());
    Watched::new(text, read, parse).spawn(settings, "template", on_change)
}

/// Connects to the API server of this cluster, or of the kubeconfig.
async fn api_client(namespace: &str, webhook_configuration: String) -> Option<ApiClient> {
    let config =
        kube::Config::infer().await.inspect_err(|error| info!(%error, "no API server found")).ok()?;
    let client = Client::try_from(config)
        .inspect_err(|error| warn!(%error, "creating the API server client failed"))
        .ok()?;
    Some(ApiClient::new(client, namespace, webhook_configuration))
}

/// Rejects native sidecars on an older API server: Pods would stay in their init containers
/// forever.
async fn check_native_sidecars(settings: &Settings, client: Option<&ApiClient>) -> Result<(), Failure> {
    let Some(client) = client
        .filter(|_| settings.mode == InjectionMode::Auto && settings.sidecar_mode == SidecarMode::Native)
    else {
        return Ok(());
    };
    match client.minor_version().await {
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
