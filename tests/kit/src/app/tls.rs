//! TLS settings of applications under probe and for mutual TLS, with certificates generated for
//! each test.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519, PKCS_RSA_SHA256,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsAcceptor;

/// TLS settings of an application.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Tls {
    /// The name in the certificate; no client verifies it.
    pub name: String,
    /// Whether the certificate has expired.
    pub expired: bool,
    pub key: Key,
    /// Whether the key usage extension of the certificate excludes `digitalSignature`.
    pub no_signature: bool,
    /// Whether the server requests a client certificate.
    pub client_certificate: ClientCertificate,
    /// The protocols that ALPN offers.
    pub alpn: Vec<String>,
    pub versions: Versions,
}

/// The type of a certificate's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Key {
    #[default]
    P256,
    P384,
    P521,
    /// RSA with 2048 bits.
    Rsa,
    Ed25519,
}

/// Whether the server requests a client certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClientCertificate {
    #[default]
    No,
    /// The server requests one and continues without it.
    Asked,
    /// The server requests one, and the handshake fails without it.
    Needed,
}

/// The supported versions of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Versions {
    /// TLS 1.2 and 1.3.
    #[default]
    #[serde(rename = "1.2, 1.3")]
    Both,
    /// TLS 1.2 only.
    #[serde(rename = "1.2")]
    Only12,
    /// TLS 1.3 only.
    #[serde(rename = "1.3")]
    Only13,
}

static ONLY_1_2: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
static ONLY_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

impl Versions {
    fn supported(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Both => rustls::ALL_VERSIONS,
            Self::Only12 => ONLY_1_2,
            Self::Only13 => ONLY_1_3,
        }
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            name: "app.example.com".into(),
            expired: false,
            key: Key::default(),
            no_signature: false,
            client_certificate: ClientCertificate::default(),
            alpn: Vec::new(),
            versions: Versions::default(),
        }
    }
}

impl Tls {
    /// Returns the default settings with these ALPN protocols.
    pub fn with_alpn(names: &[&str]) -> Self {
        Self { alpn: names.iter().map(ToString::to_string).collect(), ..Self::default() }
    }

    /// Returns an acceptor with a newly generated self-signed certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        let key = match self.key {
            Key::P256 => KeyPair::generate(),
            Key::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            Key::P521 => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
            Key::Rsa => KeyPair::generate_for(&PKCS_RSA_SHA256),
            Key::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
        }
        .expect("a key");
        let mut parameters = CertificateParams::new(vec![self.name.clone()]).expect("a name");
        if self.expired {
            parameters.not_after = rcgen::date_time_ymd(2001, 1, 1);
        }
        if self.no_signature {
            parameters.key_usages = match self.key {
                Key::Rsa => vec![KeyUsagePurpose::KeyEncipherment],
                _ => vec![KeyUsagePurpose::KeyAgreement],
            };
        }
        let certificate = parameters.self_signed(&key).expect("a certificate");
        let builder = ServerConfig::builder_with_protocol_versions(self.versions.supported());
        let builder = if self.client_certificate == ClientCertificate::No {
            builder.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.der().clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots));
            let verifier = match self.client_certificate {
                ClientCertificate::Needed => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config =
            builder.with_single_cert(vec![certificate.der().clone()], key).expect("a matching key");
        config.alpn_protocols = self.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A certificate authority and one certificate, all as PEM, for mutual TLS.
pub struct Identity {
    pub authority: String,
    /// A certificate that the authority signed.
    pub certificate: String,
    /// The key of `certificate`.
    pub key: String,
}

impl Identity {
    /// Generates an authority and a certificate for `name`. Their subjects differ, because Envoy
    /// treats a certificate with the same subject and issuer as self-signed and rejects it.
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

/// Installs aws-lc-rs as the TLS provider of this process; repeated calls do nothing.
pub fn install_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
