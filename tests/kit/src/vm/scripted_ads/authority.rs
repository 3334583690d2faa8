//! Both ends of mutual TLS, with certificates of one authority.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{WantsServerCert, WebPkiClientVerifier};
use rustls::{ConfigBuilder, RootCertStore, ServerConfig};
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
        self.acceptor_with(name, ServerConfig::builder().with_client_cert_verifier(verifier))
    }

    /// Like [`Authority::acceptor`], for clients without a certificate.
    ///
    /// # Panics
    /// If `name` is not a valid name.
    pub fn acceptor_of_tokens(&self, name: &str) -> TlsAcceptor {
        install_provider();
        self.acceptor_with(name, ServerConfig::builder().with_no_client_auth())
    }

    fn acceptor_with(
        &self,
        name: &str,
        builder: ConfigBuilder<ServerConfig, WantsServerCert>,
    ) -> TlsAcceptor {
        let issued = self.sign(name);
        let chain = vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).expect("PEM");
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
