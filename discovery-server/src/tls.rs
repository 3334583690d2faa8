//! The server's certificate, key and client CA, reloaded from files when their content changes. All
//! three are replaced together or not at all; established connections keep the configuration that
//! they began with.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::sync::watch;

use crate::metrics::Metrics;
use serving::exit::Failure;
use serving::tls::{self, Pem, TlsError};
use serving::watched::Watched;

/// Paths of the TLS files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    pub client_ca: PathBuf,
}

/// Certificate chain, key and client CA.
type Content = [Pem; 3];

impl TlsFiles {
    /// Reads the three files. The error has one line for each file that cannot be read.
    fn read(&self) -> Result<Content, String> {
        let files = [
            Pem::read("--tls-cert", &self.cert),
            Pem::read("--tls-key", &self.key),
            Pem::read("--client-ca", &self.client_ca),
        ];
        match files {
            [Ok(cert), Ok(key), Ok(client_ca)] => Ok([cert, key, client_ca]),
            files => {
                let errors = files.into_iter().filter_map(Result::err).map(|error| error.to_string());
                Err(errors.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Reads the files once.
    ///
    /// # Errors
    /// Returns which file cannot be read, or why the files cannot be used.
    pub fn load(&self) -> Result<ServerConfig, Failure> {
        Ok(config(&self.read().map_err(Failure::CannotRead)?)?)
    }

    /// Reads the files now and checks them for changes every 5 seconds.
    ///
    /// # Errors
    /// As [`TlsFiles::load`]. Later errors are logged and counted, and the last valid configuration
    /// stays in use.
    pub fn watch(self, metrics: Arc<Metrics>) -> Result<watch::Receiver<Arc<ServerConfig>>, Failure> {
        let content = self.read().map_err(Failure::CannotRead)?;
        let first = config(&content)?;
        let parse = |content: &Content| config(content).map_err(|error| error.to_string());
        let watched = Watched::new(content, move || self.read(), parse);
        Ok(watched.spawn(first, "TLS certificate", move |config| metrics.tls_reloaded(config.is_some())))
    }
}

fn config([cert, key, client_ca]: &Content) -> Result<ServerConfig, TlsError> {
    tls::server_config(cert, key, Some(tls::client_verifier(client_ca)?), b"h2")
}
