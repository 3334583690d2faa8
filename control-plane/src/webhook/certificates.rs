//! Loads or issues the server's certificate and replaces it on renewal. The TLS configuration is
//! replaced as a whole or not at all.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use time::OffsetDateTime;
use tokio::time::sleep;
use tracing::{info, warn};

use super::POLL;
use super::api_client::{ApiClient, ApiClientError};
use super::authority::{Authority, LEAF_VALIDITY, Pair, is_due};
use super::metrics::Metrics;
use crate::config::{CertificateFiles, SelfSigned};
use serving::exit::Failure;
use serving::monitoring::Pending;
use serving::tls::{self, ClientAuth};

/// Reason for not being ready; [`CA_BUNDLE`] is another one.
pub(super) const CERTIFICATE: &str = "certificate";
const CA_BUNDLE: &str = "caBundle";
/// How often CA and caBundle are compared with the API server.
const COMPARE: Duration = Duration::from_secs(60);
/// The same interval after an error.
const RETRY: Duration = Duration::from_secs(2);
const WHAT: &str = "certificate";

/// Content of the certificate files.
#[derive(PartialEq, Eq)]
struct Content {
    chain: Vec<u8>,
    key: Vec<u8>,
    client: Option<Vec<u8>>,
}

fn read(files: &CertificateFiles) -> Result<Content, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    Ok(Content {
        chain: read(&files.directory.join("tls.crt"))?,
        key: read(&files.directory.join("tls.key"))?,
        client: files.client_ca.as_deref().map(read).transpose()?,
    })
}

fn config(content: &Content, files: &CertificateFiles) -> Result<ServerConfig, tls::TlsError> {
    let client = content.client.clone().map(|ca| ClientAuth { ca, name: files.client_name.clone() });
    tls::server_config(&content.chain, &content.key, client.as_ref())
}

/// Loads the certificate from files, and reloads it when they change; they are checked every 5
/// seconds.
pub(super) fn from_files(
    files: CertificateFiles,
    metrics: &Arc<Metrics>,
    pending: &Pending,
) -> Result<Arc<ArcSwap<ServerConfig>>, Failure> {
    let first = read(&files).map_err(Failure::CannotRead)?;
    let config_ = config(&first, &files).map_err(|error| Failure::Settings(error.to_string()))?;
    let tls = Arc::new(ArcSwap::from_pointee(config_));
    metrics.certificate(tls::not_after(&first.chain).unwrap_or_default());
    pending.set(CERTIFICATE, false);
    let (serving, metrics) = (tls.clone(), metrics.clone());
    tokio::spawn(async move {
        let mut last = Ok(first);
        loop {
            sleep(POLL).await;
            let now = read(&files);
            if now == last {
                continue;
            }
            let made = now
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|content| config(content, &files).map_err(|error| error.to_string()));
            metrics.reloaded(WHAT, made.is_ok());
            match made {
                Ok(config) => {
                    serving.store(Arc::new(config));
                    let chain = now.as_ref().map(|content| content.chain.as_slice()).unwrap_or_default();
                    metrics.certificate(tls::not_after(chain).unwrap_or_default());
                    info!("TLS certificate reloaded");
                }
                Err(error) => warn!(error, "TLS certificate rejected, keeping the previous one"),
            }
            last = now;
        }
    });
    Ok(tls)
}

/// Issues a certificate from the CA that all replicas share, and renews CA, leaf and caBundle in
/// the background. Returns when the first certificate exists.
pub(super) async fn self_signed(
    cluster: ApiClient,
    own: SelfSigned,
    metrics: &Arc<Metrics>,
    pending: &Pending,
) -> Result<Arc<ArcSwap<ServerConfig>>, Failure> {
    pending.set(CA_BUNDLE, true);
    let client = match &own.client_ca {
        None => None,
        Some(path) => Some(ClientAuth { ca: read_client_ca(path)?, name: own.client_name.clone() }),
    };
    let authority = loop {
        match cluster.authority(now(), None).await {
            Ok(authority) => break authority,
            Err(error) => warn!(%error, "reading or creating the certificate authority failed, retrying"),
        }
        sleep(RETRY).await;
    };
    let unusable = |error: String| Failure::Settings(error);
    let leaf = authority.leaf(&own.names, now()).map_err(|error| unusable(error.to_string()))?;
    let first = server(&leaf, client.as_ref()).map_err(unusable)?;
    let tls = Arc::new(ArcSwap::from_pointee(first));
    metrics.certificate(tls::not_after(leaf.certificate.as_bytes()).unwrap_or_default());
    pending.set(CERTIFICATE, false);
    let keeper = Keeper {
        cluster,
        own,
        client,
        tls: tls.clone(),
        metrics: metrics.clone(),
        pending: pending.clone(),
        signer: authority.current.certificate,
        leaf,
        announced: None,
    };
    tokio::spawn(keeper.keep());
    Ok(tls)
}

fn read_client_ca(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::CannotRead(format!("--client-ca = {}: {error}", path.display())))
}

fn server(leaf: &Pair, client: Option<&ClientAuth>) -> Result<ServerConfig, String> {
    tls::server_config(leaf.certificate.as_bytes(), leaf.key.as_bytes(), client)
        .map_err(|error| error.to_string())
}

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Renews a self-signed certificate.
struct Keeper {
    cluster: ApiClient,
    own: SelfSigned,
    client: Option<ClientAuth>,
    tls: Arc<ArcSwap<ServerConfig>>,
    metrics: Arc<Metrics>,
    pending: Pending,
    /// CA certificate that signed the current leaf.
    signer: String,
    leaf: Pair,
    /// Bundle that the API server was last seen to have.
    announced: Option<String>,
}

impl Keeper {
    async fn keep(mut self) {
        loop {
            let pause = match self.compare().await {
                Ok(()) => COMPARE,
                Err(error) => {
                    warn!(%error, "comparing certificate authority and caBundle failed, retrying");
                    RETRY
                }
            };
            sleep(pause).await;
        }
    }

    async fn compare(&mut self) -> Result<(), ApiClientError> {
        let authority = self.cluster.authority(now(), self.announced.as_deref()).await?;
        let bundle = authority.bundle();
        if self.cluster.publish_bundle(&bundle).await? {
            info!("caBundle updated");
            self.metrics.reloaded("caBundle", true);
        }
        self.announced = Some(bundle);
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
        let made = server(&leaf, self.client.as_ref());
        self.metrics.reloaded(WHAT, made.is_ok());
        match made {
            Ok(config) => {
                self.tls.store(Arc::new(config));
                self.metrics.certificate(tls::not_after(leaf.certificate.as_bytes()).unwrap_or_default());
                self.signer.clone_from(&authority.current.certificate);
                self.leaf = leaf;
                info!("TLS certificate renewed");
            }
            Err(error) => warn!(error, "TLS certificate rejected, keeping the previous one"),
        }
        Ok(())
    }
}
