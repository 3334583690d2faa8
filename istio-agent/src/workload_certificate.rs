//! The certificate of the workload: requested at the start, renewed, and kept while renewals fail.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use istio_certificates::identity::WorkloadIdentity;
use istio_certificates::issued::Issued;
use istio_certificates::key::KeyKind;
use istio_certificates::renewal::{Due, Renewal, Schedule};
use istio_certificates::request::SigningRequest;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::ca_client::CaClient;
use crate::metrics::SigningMetrics;
use crate::stored::StoredCertificate;

/// How often the clock is compared with the time of the renewal: it may be set, and a machine may sleep.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);

/// What the certificate is requested with.
#[derive(Clone, Debug)]
pub struct CertificateConfig {
    pub identity: WorkloadIdentity,
    pub key: KeyKind,
    pub schedule: Schedule,
    pub ca: CaClient,
    /// Directory of this user in memory, for a restart.
    pub state_dir: PathBuf,
}

/// The certificate in use; `None` until there is one.
pub type CertificateReceiver = watch::Receiver<Option<Arc<Issued>>>;

/// Starts the task that requests certificates. Must be called in a runtime.
pub fn start(
    config: CertificateConfig,
    metrics: Arc<SigningMetrics>,
    mut random: fastrand::Rng,
) -> (CertificateReceiver, JoinHandle<()>) {
    let stored = StoredCertificate::new(config.state_dir.clone(), &config.identity);
    let renewal = Renewal::new(config.schedule, stored.load(), now(), random.f64());
    let first = renewal.certificate(now()).cloned().map(Arc::new);
    if let Some(first) = &first {
        info!(remaining = ?remaining(first), "stored certificate in use");
    }
    let (sender, receiver) = watch::channel(first);
    let task = Task { config, metrics, stored, renewal, random, sender, last_error: None };
    (receiver, tokio::spawn(task.run()))
}

struct Task {
    config: CertificateConfig,
    metrics: Arc<SigningMetrics>,
    stored: StoredCertificate,
    renewal: Renewal,
    random: fastrand::Rng,
    sender: watch::Sender<Option<Arc<Issued>>>,
    /// The same error is logged once.
    last_error: Option<String>,
}

impl Task {
    async fn run(mut self) {
        loop {
            self.wait().await;
            match self.request().await {
                Ok(issued) => {
                    info!(valid = ?remaining(&issued), "certificate issued");
                    self.last_error = None;
                    self.renewal.issued(issued.clone(), self.random.f64());
                    self.stored.store(&issued);
                    self.sender.send_replace(Some(Arc::new(issued)));
                }
                Err(error) => {
                    self.renewal.failed(self.random.f64());
                    if self.last_error.as_ref() != Some(&error) {
                        let kept = self.renewal.certificate(now()).map(remaining);
                        let server = &self.config.ca.server.authority;
                        match kept {
                            Some(remaining) => {
                                warn!(
                                    server,
                                    error,
                                    ?remaining,
                                    "certificate not renewed, keeping the valid one"
                                );
                            }
                            None => warn!(server, error, "no certificate"),
                        }
                        self.last_error = Some(error);
                    }
                }
            }
        }
    }

    /// Waits until the next request is due.
    async fn wait(&self) {
        match self.renewal.due() {
            Due::After(delay) => sleep(delay).await,
            Due::At(time) => {
                while let Ok(left) = time.duration_since(now()) {
                    sleep(left.clamp(Duration::from_millis(1), CLOCK_INTERVAL)).await;
                }
            }
        }
    }

    async fn request(&mut self) -> Result<Issued, String> {
        let CertificateConfig { identity, key, ca, .. } = self.config.clone();
        // RSA keys take long.
        let made = spawn_blocking(move || SigningRequest::new(&identity, key)).await;
        let made = made.map_err(|error| error.to_string())?.map_err(|error| format!("no key: {error}"))?;
        let begun = Instant::now();
        let signed = ca.sign(&made.request, self.random.fork()).await;
        self.metrics.requested(signed.is_ok(), begun.elapsed());
        let chain = signed?;
        Issued::new(&chain, made.key, now()).map_err(|error| error.to_string())
    }
}

fn remaining(issued: &Issued) -> Duration {
    let left = issued.not_after.duration_since(now()).unwrap_or_default();
    Duration::from_secs(left.as_secs())
}

#[expect(clippy::disallowed_methods, reason = "certificates expire by the clock of the machine")]
fn now() -> SystemTime {
    SystemTime::now()
}
