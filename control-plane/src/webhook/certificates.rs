//! Loads or issues the server's certificate and replaces it on renewal. The TLS configuration is
//! replaced as a whole or not at all.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::api_client::{ApiClient, ApiClientError};
use super::authority::{Authority, LEAF_VALIDITY, Pair, is_due};
use super::metrics::Metrics;
use super::x509::{NameVerifier, not_after};
use crate::config::{CertificateFiles, SelfSigned};
use crate::monitoring::Pending;
use serving::exit::Failure;
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
        tls,
        metrics: metrics.clone(),
        pending: pending.clone(),
        signer: authority.current.certificate,
        leaf,
        published_bundle: None,
    };
    tokio::spawn(renewer.run());
    Ok(receiver)
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
    tls: watch::Sender<Arc<ServerConfig>>,
    metrics: Arc<Metrics>,
    pending: Pending,
    /// CA certificate that signed the current leaf.
    signer: String,
    leaf: Pair,
    /// Bundle that the API server was last seen to have.
    published_bundle: Option<String>,
}

impl Renewer {
    async fn run(mut self) {
        loop {
            let pause = match self.reconcile().await {
                Ok(()) => COMPARE,
                Err(error) => {
                    warn!(%error, "comparing certificate authority and caBundle failed, retrying");
                    RETRY
                }
            };
            sleep(pause).await;
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
        self.renew(&authority)?;
        self.pending.set(CA_BUNDLE, false);
        Ok(())
    }

    fn renew(&mut self, authority: &Authority) -> Result<(), ApiClientError> {
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
