//! Both ends of mutual TLS, with certificates of one authority.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::app::tls::install_provider;
use crate::authority::Authority;

impl Authority {
    /// Returns an acceptor with a certificate for this name, which accepts only clients of this
    /// authority.
    ///
    /// # Panics
    /// If `name` is not a valid name.
    pub fn acceptor(&self, name: &str) -> TlsAcceptor {
        install_provider();
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().expect("a verifier");
        let issued = self.sign(name);
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
    /// If a file cannot be written.
    pub fn write_client(&self, folder: &Path) {
        let client = self.sign("spiffe://cluster.local/ns/shop/sa/pay");
        for (name, text) in
            [("ca.pem", self.pem()), ("cert.pem", client.certificate), ("key.pem", client.key)]
        {
            std::fs::write(folder.join(name), text).expect("a writable folder");
        }
    }
}
