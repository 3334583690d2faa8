//! The server's certificate, key and client CA, reloaded from files when their content changes. All
//! three are replaced together or not at all; established connections keep the configuration that
//! they began with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::discovery::metrics::Metrics;
use serving::exit::Failure;
use serving::tls::{self, ClientAuth};

/// Interval between two checks of the files.
const POLL: Duration = Duration::from_secs(5);

/// Paths of the TLS files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    pub client_ca: PathBuf,
}

/// Contents of the three files.
#[derive(PartialEq, Eq)]
struct Content {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Vec<u8>,
}

impl TlsFiles {
    /// Reads the three files. The error has one line for each file that cannot be read.
    fn read(&self) -> Result<Content, String> {
        let read = |flag: &str, path: &PathBuf| {
            std::fs::read(path).map_err(|error| format!("{flag} = {}: {error}", path.display()))
        };
        let files = [
            read("--tls-cert", &self.cert),
            read("--tls-key", &self.key),
            read("--client-ca", &self.client_ca),
        ];
        match files {
            [Ok(cert), Ok(key), Ok(client_ca)] => Ok(Content { cert, key, client_ca }),
            files => Err(files.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("\n")),
        }
    }

    fn config(&self, content: &Content) -> Result<ServerConfig, String> {
        let client = ClientAuth { ca: content.client_ca.clone(), name: None };
        let made = tls::server_config(&content.cert, &content.key, Some(&client));
        let mut config = made.map_err(|error| {
            let paths = [&self.cert, &self.key, &self.client_ca].map(|path| path.display().to_string());
            format!("--tls-cert, --tls-key, --client-ca = {}: {error}", paths.join(", "))
        })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A resumed session would bypass a client CA that changed since, and sessions cost memory.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }

    /// Reads the files once.
    ///
    /// # Errors
    /// Returns which file cannot be read, or why the files cannot be used.
    pub fn load(&self) -> Result<ServerConfig, Failure> {
        let content = self.read().map_err(Failure::CannotRead)?;
        self.config(&content).map_err(Failure::Settings)
    }

    /// Reads the files now and checks them for changes every 5 seconds.
    ///
    /// # Errors
    /// As [`TlsFiles::load`]. Later errors are logged and counted, and the last valid configuration
    /// stays in use.
    pub fn watch(self, metrics: Arc<Metrics>) -> Result<Arc<ArcSwap<ServerConfig>>, Failure> {
        let first = self.read().map_err(Failure::CannotRead)?;
        let serving = Arc::new(ArcSwap::from_pointee(self.config(&first).map_err(Failure::Settings)?));
        let exchanged = serving.clone();
        tokio::spawn(async move {
            let mut last = Ok(first);
            loop {
                sleep(POLL).await;
                let now = self.read();
                if now == last {
                    continue;
                }
                let made = now.as_ref().map_err(Clone::clone).and_then(|content| self.config(content));
                metrics.tls_reloaded(made.is_ok());
                match made {
                    Ok(config) => {
                        exchanged.store(Arc::new(config));
                        info!("TLS certificate reloaded");
                    }
                    Err(error) => warn!(error, "TLS certificate not reloaded, keeping the previous one"),
                }
                last = now;
            }
        });
        Ok(serving)
    }
}
