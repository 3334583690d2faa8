//! PEM files, and TLS server configurations made of them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

use crate::exit::Failure;
use crate::files;

/// A certificate or key that cannot be used. The text names the flag and the file.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("{name}: {source}")]
    Read { name: String, source: io::Error },
    #[error("{name}: the file contains no PEM-encoded {what}")]
    Pem { name: String, what: &'static str },
    /// The certificate and the key do not match, or the CA is invalid.
    #[error("{name}: {text}")]
    Rejected { name: String, text: String },
}

impl TlsError {
    /// Returns the error for a file that was read but cannot be used.
    pub fn rejected(file: &Pem, error: impl ToString) -> Self {
        Self::Rejected { name: file.name.clone(), text: error.to_string() }
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Read { .. } => Self::CannotRead(error.to_string()),
            TlsError::Pem { .. } | TlsError::Rejected { .. } => Self::Settings(error.to_string()),
        }
    }
}

/// Content of a PEM file.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// Name in error texts, such as `--tls-cert = "/etc/tls.crt"`.
    name: String,
    content: Vec<u8>,
}

impl Pem {
    pub fn new(name: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), content: content.into() }
    }

    /// Reads the file that was given with `flag`.
    pub fn read(flag: &str, file: &Path) -> Result<Self, TlsError> {
        let name = format!("{flag} = {file:?}");
        match files::read(file) {
            Ok(content) => Ok(Self { name, content }),
            Err(source) => Err(TlsError::Read { name, source }),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.content
    }

    /// Returns all certificates, at least one.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.content).collect();
        let certificates = certificates.ok().filter(|certificates| !certificates.is_empty());
        certificates.ok_or_else(|| self.contains_no("certificate"))
    }

    pub fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.content).map_err(|_| self.contains_no("private key"))
    }

    /// Returns the CA certificates that can be parsed, at least one.
    pub fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_slice_iter(&self.content).filter_map(Result::ok);
        match roots.add_parsable_certificates(certificates).0 {
            0 => Err(self.contains_no("certificate")),
            _ => Ok(roots),
        }
    }

    fn contains_no(&self, what: &'static str) -> TlsError {
        TlsError::Pem { name: self.name.clone(), what }
    }
}

/// Makes the default cryptography the one of this process, which [`server_config`] and kube use.
pub fn install_crypto() -> Result<(), Failure> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let installed = provider.install_default();
    installed.map_err(|_| Failure::Software("a rustls crypto provider is already installed".to_owned()))
}

/// Returns a server configuration for this certificate chain and key with TLS 1.2 and 1.3, which
/// offers `protocol` by ALPN. Client certificates are required if there is a verifier.
pub fn server_config(
    chain: &Pem,
    key: &Pem,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    protocol: &[u8],
) -> Result<ServerConfig, TlsError> {
    let builder = ServerConfig::builder();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let made = builder.with_single_cert(chain.certificates()?, key.key()?);
    let mut config = made.map_err(|error| TlsError::rejected(chain, error))?;
    config.alpn_protocols = vec![protocol.to_vec()];
    // A resumed session would bypass a client CA that changed since, and sessions cost memory. Go's clients
    // resume none by default.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// Returns a verifier that accepts client certificates of these CAs.
pub fn client_verifier(ca: &Pem) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let verifier = WebPkiClientVerifier::builder(Arc::new(ca.roots()?)).build();
    verifier.map_err(|error| TlsError::rejected(ca, error))
}

#[cfg(test)]
mod tests;
