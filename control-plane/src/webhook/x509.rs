//! What rustls does not read of a certificate: its expiry, and the common name.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Returns when the first certificate of a PEM chain expires, in seconds since 1970.
pub(super) fn not_after(chain: &[u8]) -> Option<i64> {
    let certificate = CertificateDer::from_pem_slice(chain).ok()?;
    let (_, certificate) = X509Certificate::from_der(&certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// A verifier that also requires a name: the common name or a subject alternative name.
#[derive(Debug)]
pub(super) struct NameVerifier {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    pub(super) name: String,
}

impl NameVerifier {
    fn has_name(&self, certificate: &CertificateDer) -> bool {
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

impl ClientCertVerifier for NameVerifier {
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
        if self.has_name(end_entity) {
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
