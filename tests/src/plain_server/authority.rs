//! A certificate authority of a test: signs whatever it is asked for, and makes the two ends of mutual TLS of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::app::tls::install_provider;

/// How many there were.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// An authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, PEM.
pub struct Issued {
    /// Without the authority's.
    pub certificate: String,
    /// PKCS #8.
    pub key: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// Never.
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Of two with one name, the wrong one is taken for a forger.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        parameters.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(parameters, key).expect("an authority"))
    }

    /// Its own certificate, PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a name: `spiffe://…`, a DNS name or an address.
    ///
    /// # Panics
    /// When it is no name.
    pub fn issue(&self, name: &str) -> Issued {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        let name = match name.parse() {
            Ok(ip) => SanType::IpAddress(ip),
            Err(_) if name.starts_with("spiffe://") => SanType::URI(name.try_into().expect("ASCII")),
            Err(_) => SanType::DnsName(name.try_into().expect("ASCII")),
        };
        parameters.subject_alt_names.push(name);
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.0).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// A server with a certificate for this name, which takes clients of this authority alone.
    ///
    /// # Panics
    /// When it is no name.
    pub fn acceptor(&self, name: &str) -> TlsAcceptor {
        install_provider();
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().expect("a verifier");
        let issued = self.issue(name);
        let chain = vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).expect("PEM");
        let builder = ServerConfig::builder().with_client_cert_verifier(verifier);
        let mut config = builder.with_single_cert(chain, key).expect("a matching key");
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Writes `ca.pem`, `cert.pem` and `key.pem` of a client to a folder.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_client(&self, folder: &Path) {
        let client = self.issue("spiffe://cluster.local/ns/shop/sa/pay");
        for (name, text) in
            [("ca.pem", self.pem()), ("cert.pem", client.certificate), ("key.pem", client.key)]
        {
            std::fs::write(folder.join(name), text).expect("a writable folder");
        }
    }
}
