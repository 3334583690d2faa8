//! Mutual TLS towards a discovery server: reads three PEM files and builds a rustls client
//! configuration from them.

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

/// Size limit of each file in bytes; the rest is not read.
const FILE_LIMIT: u64 = 1024 * 1024;

/// Certificate files that cannot be used. The text names the flag and the file.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("{flag} = {file:?}: {source}")]
    Read { flag: &'static str, file: PathBuf, source: std::io::Error },
    #[error("{flag} = {file:?}: the file contains no PEM-encoded {what}")]
    Pem {
        flag: &'static str,
        file: PathBuf,
        /// What the file must contain, `certificate` or `private key`.
        what: &'static str,
    },
    /// The certificate and the key do not match, or rustls does not accept them.
    #[error("--discovery-cert = {file:?}: {source}")]
    Refused { file: PathBuf, source: rustls::Error },
}

/// The subject alternative name that the server's certificate must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum San {
    /// A DNS name or an IP address.
    Name(ServerName<'static>),
    /// A URI, and the server name for SNI, which is not verified.
    Uri(String, ServerName<'static>),
}

impl San {
    /// Parses `spiffe://…`, a DNS name or an IP address. `host` is the server's host, used for SNI
    /// with a SPIFFE ID. Returns `None` if `text` is none of these.
    pub fn new(text: &str, host: &str) -> Option<Self> {
        let name = |text: &str| ServerName::try_from(text.to_owned()).ok();
        if text.starts_with("spiffe://") {
            let unnamed = || DnsName::try_from("discovery").ok().map(ServerName::DnsName);
            return Some(Self::Uri(text.to_owned(), name(host).or_else(unnamed)?));
        }
        name(text).map(Self::Name)
    }

    /// The server name for rustls, which is also sent as SNI.
    pub fn server_name(&self) -> ServerName<'static> {
        match self {
            Self::Name(name) | Self::Uri(_, name) => name.clone(),
        }
    }
}

/// Paths of the three files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file with the CA certificates that verify the server's certificate.
    pub ca: PathBuf,
    /// PEM file with the client certificate and its chain.
    pub cert: PathBuf,
    /// PEM file with the client certificate's private key.
    pub key: PathBuf,
}

/// Content of the CA, certificate and key files, in this order.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsContent([Vec<u8>; 3]);

impl TlsFiles {
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

    /// Builds a client configuration that accepts servers with the given name, over TLS 1.2 or 1.3
    /// and with HTTP/2 as the only ALPN protocol.
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
