//! Loads or issues the server's certificate and replaces it on renewal. The TLS configuration is
//! replaced as a whole or not at all.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use super::api_client::{ApiClient, ApiClientError};
use super::authority::{Authority, LEAF_VALIDITY, Pair, is_due};
use super::metrics::Metrics;
use super::x509::{NameVerifier, not_after};
use crate::config::{CertificateFiles, SelfSigned};
use serving::exit::Failure;
use serving::monitoring::Pending;
use serving::tls::{self, Pem, TlsError};
use serving::watched::Watched;

/// Reason for not being ready; [`CA_BUNDLE`] is another one.
pub(super) const CERTIFICATE: &str = "certificate";
const CA_BUNDLE: &str = "caBundle";
/// How often CA and caBundle are compared with the API server.
const COMPARE: Duration = Duration::from_secs(60);
/// The same interval after an error.
const RETRY: Duration = Duration::from_secs(2);
/// Label of reloads in metrics.
const KIND: &str = "certificate";

/// Content of the certificate files.
#[derive(PartialEq, Eq)]
struct Content {
    chain: Pem,
    key: Pem,
    client_ca: Option<Pem>,
}

fn read(files: &CertificateFiles) -> Result<Content, TlsError> {
    Ok(Content {
        chain: Pem::read("--cert-dir", &files.directory.join("tls.crt"))?,
        key: Pem::read("--cert-dir", &files.directory.join("tls.key"))?,
        client_ca: read_client_ca(files.client_ca.as_deref())?,
    })
}

fn read_client_ca(path: Option<&Path>) -> Result<Option<Pem>, TlsError> {
    path.map(|path| Pem::read("--client-ca", path)).transpose()
}

/// Makes the TLS configuration of these files and shows the certificate's expiry in the metrics.
/// Client certificates must have the common name or subject alternative name `client_name`.
fn config(
    content: &Content,
    client_name: Option<&String>,
    metrics: &Metrics,
) -> Result<ServerConfig, TlsError> {
    let verifier = content.client_ca.as_ref().map(tls::client_verifier).transpose()?;
    let verifier = verifier.map(|verifier| match client_name {
        None => verifier,
        Some(name) => Arc::new(NameVerifier { verifier, name: name.clone() }),
    });
    let config = tls::server_config(&content.chain, &content.key, verifier, b"http/1.1")?;
    metrics.certificate(not_after(content.chain.as_bytes()).unwrap_or_default());
    Ok(config)
}

/// Loads the certificate from files, and reloads it when they change.
pub(super) fn from_files(
    files: CertificateFiles,
    metrics: &Arc<Metrics>,
    pending: &Pending,
) -> Result<watch::Receiver<Arc<ServerConfig>>, Failure> {
    let (content, client_name) = (read(&files)?, files.client_name.clone());
    let first = config(&content, client_name.as_ref(), metrics)?;
    pending.set(CERTIFICATE, false);
    let read = move || read(&files).map_err(|error| error.to_string());
    let shown = metrics.clone();
    let parse = move |content: &Content| {
        config(content, client_name.as_ref(), &shown).map_err(|error| error.to_string())
    };
    let metrics = metrics.clone();
    let on_change = move |config: Option<&ServerConfig>| metrics.reloaded(KIND, config.is_some());
    Ok(Watched::new(content, read, parse).spawn(first, "TLS certificate", on_change))
}

/// Issues a certificate from the CA that all replicas share, and renews CA, leaf and caBundle in
/// the background. Returns when the first certificate exists.
pub(super) async fn self_signed(
    cluster: ApiClient,
    own: SelfSigned,
    metrics: &Arc<Metrics>,
    pending: &Pending,
) -> Result<watch::Receiver<Arc<ServerConfig>>, Failure> {
    pending.set(CA_BUNDLE, true);
    let client_ca = read_client_ca(own.client_ca.as_deref())?;
    let changed_client_ca = own.client_ca.clone().map(|path| watch_client_ca(path, client_ca.clone()));
    let authority = loop {
        match cluster.authority(now(), None).await {
            Ok(authority) => break authority,
            Err(error) => warn!(%error, "reading or creating the certificate authority failed, retrying"),
        }
        sleep(RETRY).await;
    };
    let leaf = authority.leaf(&own.names, now()).map_err(|error| Failure::Settings(error.to_string()))?;
    let first = config(&content(&leaf, client_ca.clone()), own.client_name.as_ref(), metrics)?;
    let (tls, receiver) = watch::channel(Arc::new(first));
    pending.set(CERTIFICATE, false);
    let renewer = Renewer {
        cluster,
        own,
        client_ca,
        changed_client_ca,
        tls,
        metrics: metrics.clone(),
        pending: pending.clone(),
        signer: authority.current.certificate.clone(),
        authority,
        leaf,
        published_bundle: None,
    };
    tokio::spawn(renewer.run());
    Ok(receiver)
}

fn watch_client_ca(path: PathBuf, content: Option<Pem>) -> Watched<Pem> {
    let read = move || read_client_ca(Some(&path)).map_err(|error| error.to_string());
    let parse = |content: &Option<Pem>| content.clone().ok_or_else(|| "no client CA".to_owned());
    Watched::new(content, read, parse)
}

fn content(leaf: &Pair, client_ca: Option<Pem>) -> Content {
    let pem = |content: &String| Pem::new("self-signed certificate", content.as_bytes());
    Content { chain: pem(&leaf.certificate), key: pem(&leaf.key), client_ca }
}

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Renews a self-signed certificate.
struct Renewer {
    cluster: ApiClient,
    own: SelfSigned,
    client_ca: Option<Pem>,
    changed_client_ca: Option<Watched<Pem>>,
    tls: watch::Sender<Arc<ServerConfig>>,
    metrics: Arc<Metrics>,
    pending: Pending,
    /// The authority whose bundle was published last.
    authority: Authority,
    /// CA certificate that signed the current leaf.
    signer: String,
    leaf: Pair,
    /// Bundle that the API server was last seen to have.
    published_bundle: Option<String>,
}

impl Renewer {
    async fn run(mut self) {
        loop {
            let pause = match self.step().await {
                Ok(()) => COMPARE,
                Err(error) => {
                    warn!(%error, "comparing certificate authority and caBundle failed, retrying");
                    RETRY
                }
            };
            let next = Instant::now() + pause;
            while let Ok(client_ca) = timeout_at(next, self.client_ca_changed()).await {
                self.reload_client_ca(client_ca);
            }
        }
    }

    /// Compares CA and caBundle, and renews the leaf, also while the API server does not answer.
    async fn step(&mut self) -> Result<(), ApiClientError> {
        let reconciled = self.reconcile().await;
        self.renew()?;
        if reconciled.is_ok() {
            self.pending.set(CA_BUNDLE, false);
        }
        reconciled
    }

    /// Waits until the file of the client CA changes.
    async fn client_ca_changed(&mut self) -> Result<Pem, String> {
        match &mut self.changed_client_ca {
            Some(changed) => changed.changed().await,
            None => pending().await,
        }
    }

    fn reload_client_ca(&mut self, client_ca: Result<Pem, String>) {
        let made = client_ca.and_then(|client_ca| {
            let content = content(&self.leaf, Some(client_ca.clone()));
            let made = config(&content, self.own.client_name.as_ref(), &self.metrics);
            made.map(|config| (client_ca, config)).map_err(|error| error.to_string())
        });
        self.metrics.reloaded(KIND, made.is_ok());
        match made {
            Ok((client_ca, config)) => {
                self.client_ca = Some(client_ca);
                self.tls.send_replace(Arc::new(config));
                info!("client CA reloaded");
            }
            Err(error) => warn!(error, "client CA rejected, keeping the previous one"),
        }
    }

    async fn reconcile(&mut self) -> Result<(), ApiClientError> {
        let authority = self.cluster.authority(now(), self.published_bundle.as_deref()).await?;
        let bundle = authority.bundle();
        if self.cluster.publish_bundle(&bundle).await? {
            info!("caBundle updated");
            self.metrics.reloaded("caBundle", true);
        }
        self.published_bundle = Some(bundle);
        self.authority = authority;
        Ok(())
    }

    fn renew(&mut self) -> Result<(), ApiClientError> {
        let authority = &self.authority;
        let same = authority.current.certificate == self.signer;
        if same && !is_due(self.leaf.created_at, LEAF_VALIDITY, now()) {
            return Ok(());
        }
        let leaf = authority.leaf(&self.own.names, now())?;
        let content = content(&leaf, self.client_ca.clone());
        let made = config(&content, self.own.client_name.as_ref(), &self.metrics);
        self.metrics.reloaded(KIND, made.is_ok());
        match made {
            Ok(config) => {
                self.tls.send_replace(Arc::new(config));
                self.signer.clone_from(&authority.current.certificate);
                self.leaf = leaf;
                info!("TLS certificate renewed");
            }
            Err(error) => warn!(%error, "TLS certificate rejected, keeping the previous one"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
