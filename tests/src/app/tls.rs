//! TLS of applications under probe, and of mutual TLS: certificates made for each test.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PKCS_ED25519,
    PKCS_RSA_SHA256,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio_rustls::TlsAcceptor;

/// TLS 1.2 alone.
pub static ONLY_1_2: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
/// TLS 1.3 alone.
pub static ONLY_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// How an application's TLS looks.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The name in the certificate; no client checks it.
    pub name: &'static str,
    /// Whether the certificate is out of date.
    pub expired: bool,
    /// The kind of its key.
    pub key: Key,
    /// Whether a client certificate is asked for (and its absence borne).
    pub asks_for_certificate: bool,
    /// What is offered by ALPN.
    pub alpn: &'static [&'static str],
    /// Which versions are spoken.
    pub versions: &'static [&'static SupportedProtocolVersion],
}

/// The kind of a certificate's key.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    /// ECDSA on P-256.
    P256,
    /// RSA of 2048 bits.
    Rsa,
    /// Ed25519.
    Ed25519,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            name: "app.example.com",
            expired: false,
            key: Key::P256,
            asks_for_certificate: false,
            alpn: &[],
            versions: rustls::ALL_VERSIONS,
        }
    }
}

impl Tls {
    /// An acceptor with a self-signed certificate of its own.
    pub fn acceptor(&self) -> TlsAcceptor {
        let key = match self.key {
            Key::P256 => KeyPair::generate(),
            Key::Rsa => KeyPair::generate_for(&PKCS_RSA_SHA256),
            Key::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
        }
        .expect("a key");
        let mut parameters = CertificateParams::new(vec![self.name.into()]).expect("a name");
        if self.expired {
            parameters.not_after = rcgen::date_time_ymd(2001, 1, 1);
        }
        let certificate = parameters.self_signed(&key).expect("a certificate");
        let builder = ServerConfig::builder_with_protocol_versions(self.versions);
        let builder = if self.asks_for_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.der().clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated().build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config =
            builder.with_single_cert(vec![certificate.der().clone()], key).expect("a matching key");
        config.alpn_protocols = self.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A certificate authority with one certificate, all as PEM: what mutual TLS needs.
pub struct Identity {
    /// The authority's certificate.
    pub authority: String,
    /// A certificate that it signed.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Identity {
    /// A new authority, and a certificate for `name`. Each has a subject of its own: Envoy takes a certificate that
    /// is called like its issuer for a self-signed one, and refuses it.
    pub fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(parameters, key).expect("an authority");
        let mut parameters = CertificateParams::new(vec![name.into()]).expect("a name");
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &authority).expect("a certificate");
        Self { authority: authority.pem(), certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// Makes aws-lc-rs the one TLS provider of this process; repeated calls do nothing.
pub fn install_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
