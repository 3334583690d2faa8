//! Mutual TLS towards a discovery server: three files to what a client needs, checked before use, read again by content.

mod verifier;

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, DnsName, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use verifier::UriVerifier;

/// A file may be so large, in bytes.
const FILE_LIMIT: u64 = 1024 * 1024;

/// Files that cannot be used. The text names the flag and the file.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read.
    #[error("{flag} = {file:?}: {source}")]
    Read {
        /// Which one.
        flag: &'static str,
        /// Its path.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not what the flag is for.
    #[error("{flag} = {file:?}: no PEM with a {what} in it")]
    Pem {
        /// Which one.
        flag: &'static str,
        /// Its path.
        file: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The files do not fit together, or rustls does not take them.
    #[error("--discovery-cert = {file:?}: {source}")]
    Refused {
        /// The certificate's path.
        file: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The name that the server's certificate must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum San {
    /// A DNS name or an address.
    Name(ServerName<'static>),
    /// A URI, and the name that the server is called by (SNI), which does not matter.
    Uri(String, ServerName<'static>),
}

impl San {
    /// `spiffe://…`, a DNS name or an address; `host`: of the server.
    pub fn new(text: &str, host: &str) -> Option<Self> {
        let name = |text: &str| ServerName::try_from(text.to_owned()).ok();
        if text.starts_with("spiffe://") {
            let unnamed = || DnsName::try_from("discovery").ok().map(ServerName::DnsName);
            return Some(Self::Uri(text.to_owned(), name(host).or_else(unnamed)?));
        }
        name(text).map(Self::Name)
    }

    /// What rustls is told.
    pub fn server_name(&self) -> ServerName<'static> {
        match self {
            Self::Name(name) | Self::Uri(_, name) => name.clone(),
        }
    }
}

/// Where the three files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM of the authorities that sign servers' certificates.
    pub ca: PathBuf,
    /// PEM of our certificate, and the chain behind it.
    pub cert: PathBuf,
    /// PEM of its key.
    pub key: PathBuf,
}

/// What the three files hold.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsContent([Vec<u8>; 3]);

impl TlsFiles {
    /// Reads all three.
    pub fn read(&self) -> Result<TlsContent, TlsError> {
        let read = |flag, file: &PathBuf| {
            let mut content = Vec::new();
            let read = File::open(file).and_then(|file| file.take(FILE_LIMIT).read_to_end(&mut content));
            read.map(|_| content).map_err(|source| TlsError::Read { flag, file: file.clone(), source })
        };
        Ok(TlsContent([
            read("--discovery-ca", &self.ca)?,
            read("--discovery-cert", &self.cert)?,
            read("--discovery-key", &self.key)?,
        ]))
    }

    /// A client that takes servers of this name; TLS 1.2 and 1.3, HTTP/2 alone.
    pub fn client(&self, content: &TlsContent, san: &San) -> Result<Arc<ClientConfig>, TlsError> {
        let TlsContent([ca, cert, key]) = content;
        let pem = |flag, file: &PathBuf, what| TlsError::Pem { flag, file: file.clone(), what };
        let refused = |source| TlsError::Refused { file: self.cert.clone(), source };
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_slice_iter(ca).filter_map(Result::ok);
        if roots.add_parsable_certificates(certificates).0 == 0 {
            return Err(pem("--discovery-ca", &self.ca, "certificate"));
        }
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(cert).collect::<Result<_, _>>().unwrap_or_default();
        if chain.is_empty() {
            return Err(pem("--discovery-cert", &self.cert, "certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| pem("--discovery-key", &self.key, "private key"))?;
        let provider: Arc<CryptoProvider> = rustls::crypto::aws_lc_rs::default_provider().into();
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(refused)?;
        let builder = match san {
            San::Name(_) => builder.with_root_certificates(roots),
            San::Uri(uri, _) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(UriVerifier::new(roots, uri.clone(), provider))),
        };
        let mut config = builder.with_client_auth_cert(chain, key).map_err(refused)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests;
