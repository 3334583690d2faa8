//! Builds TLS server configurations from PEM and validates them.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is not PEM, or does not contain an object of this kind.
    #[error("{0}: contains no {1} in PEM format")]
    Pem(&'static str, &'static str),
    /// Certificate and key do not match, or the CA is invalid.
    #[error("{0}")]
    Refused(String),
}

/// Which client certificates the server accepts.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    /// CAs that sign client certificates, PEM.
    pub ca: Vec<u8>,
    /// Common name or subject alternative name that a client certificate must have.
    pub name: Option<String>,
}

/// Returns a server configuration for this certificate chain and key with TLS 1.2 and 1.3; ALPN
/// offers HTTP/1.1 only.
pub fn server_config(
    chain: &[u8],
    key: &[u8],
    client: Option<&ClientAuth>,
) -> Result<ServerConfig, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().unwrap_or_default();
    if chain.is_empty() {
        return Err(TlsError::Pem("tls.crt", "certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Pem("tls.key", "private key"))?;
    let builder = ServerConfig::builder();
    let builder = match client {
        None => builder.with_no_client_auth(),
        Some(client) => builder.with_client_cert_verifier(verifier(client)?),
    };
    let refused = |error: Error| TlsError::Refused(format!("tls.crt and tls.key: {error}"));
    let mut config = builder.with_single_cert(chain, key).map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns when the first certificate of a chain expires, in seconds since 1970.
pub fn not_after(chain: &[u8]) -> Option<i64> {
    let certificate = CertificateDer::from_pem_slice(chain).ok()?;
    let (_, certificate) = X509Certificate::from_der(&certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

fn verifier(client: &ClientAuth) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(&client.ca).filter_map(Result::ok);
    if roots.add_parsable_certificates(certificates).0 == 0 {
        return Err(TlsError::Pem("--client-ca", "certificate"));
    }
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
    let verifier = verifier.map_err(|error| TlsError::Refused(format!("--client-ca: {error}")))?;
    Ok(match &client.name {
        None => verifier,
        Some(name) => Arc::new(Named { verifier, name: name.clone() }),
    })
}

/// A verifier that also requires a name.
#[derive(Debug)]
struct Named {
    verifier: Arc<dyn ClientCertVerifier>,
    name: String,
}

impl Named {
    fn is_meant(&self, certificate: &CertificateDer) -> bool {
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return false };
        let mut common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let alternative = certificate.subject_alternative_name().ok().flatten();
        let mut alternative = alternative.iter().flat_map(|names| &names.value.general_names);
        common.any(|name| name == self.name)
            || alternative.any(|name| match name {
                GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
                    *name == self.name
                }
                _ => false,
            })
    }
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.verifier.verify_client_cert(end_entity, intermediates, now)?;
        if self.is_meant(end_entity) {
            Ok(verified)
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
