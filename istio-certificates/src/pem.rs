//! PEM texts of certificates.

use std::collections::BTreeSet;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Why a certificate cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    #[error("no PEM-encoded certificate")]
    NoCertificate,
    #[error("no PEM-encoded private key")]
    NoKey,
    /// Also a key that does not belong to the certificate.
    #[error("{0}")]
    Rejected(String),
}

/// Returns the certificates of a text that can be parsed, each as PEM text without line breaks around it.
pub fn certificates(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_at_checked(rest.find(BEGIN)?)?;
        let (found, after) = after.split_at_checked(after.find(END)? + END.len())?;
        rest = after;
        Some(found)
    })
    .filter(|text| not_after(text).is_some())
}

/// Returns the number of certificates of a text, also of those that cannot be parsed.
pub fn count(text: &str) -> usize {
    text.matches(BEGIN).count()
}

/// Returns the certificates of all texts, sorted and each once, which is how Istio's agent serves the CA
/// certificates of a mesh. Empty if there is none.
pub fn roots<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let found: BTreeSet<&str> = texts.into_iter().flat_map(certificates).collect();
    found.into_iter().flat_map(|text| [text, "\n"]).collect()
}

/// Returns when the first certificate of a text expires, in seconds since 1970.
pub fn not_after(text: &str) -> Option<i64> {
    let certificate = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
    let (_, certificate) = X509Certificate::from_der(&certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// Checks that the first certificate of a chain belongs to the key.
///
/// # Errors
/// If it does not, or one of them cannot be parsed.
pub fn check_pair(chain: &str, key: &str) -> Result<(), Unusable> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let parsed = parsed.ok().filter(|parsed| !parsed.is_empty()).ok_or(Unusable::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| Unusable::NoKey)?;
    let pair = CertifiedKey::from_der(parsed, key, &aws_lc_rs::default_provider());
    pair.map(drop).map_err(|error| Unusable::Rejected(error.to_string()))
}

#[cfg(test)]
mod tests;
