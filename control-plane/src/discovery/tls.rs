//! The server's certificate, key and client CA from files, read again when their content changes. What serves is exchanged as a whole, or
//! not at all; connections that stand keep what they were made with.

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

/// How often the files are looked at.
const POLL: Duration = Duration::from_secs(5);

/// Where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// `--tls-cert`.
    pub cert: PathBuf,
    /// `--tls-key`.
    pub key: PathBuf,
    /// `--client-ca`.
    pub client_ca: PathBuf,
}

/// The three as they were read.
#[derive(PartialEq, Eq)]
struct Content {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Vec<u8>,
}

impl TlsFiles {
    /// All three, or a line for each that cannot be read.
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
        // A resumed session would be judged by the CA of the day before, and each costs memory.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }

    /// Reads them, once.
    ///
    /// # Errors
    /// The file or the reason why they cannot be used.
    pub fn load(&self) -> Result<ServerConfig, Failure> {
        let content = self.read().map_err(Failure::CannotRead)?;
        self.config(&content).map_err(Failure::Settings)
    }

    /// Reads them, and again every 5 seconds.
    ///
    /// # Errors
    /// As [`TlsFiles::load`]; later ones are logged and counted, and what served before goes on.
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
                        info!("another certificate serves");
                    }
                    Err(error) => warn!(error, "the new certificate cannot be used, the one before goes on"),
                }
                last = now;
            }
        });
        Ok(serving)
    }
}
