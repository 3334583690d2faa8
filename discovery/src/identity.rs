//! Reads the SPIFFE identity from a client certificate that the TLS handshake has verified.

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::entries::Identity;
use workload_health::text::printable;

/// Identity and expiry of a verified client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateIdentity {
    pub identity: Identity,
    /// Expiry (`notAfter`) in seconds since 1970.
    pub not_after: i64,
}

/// Reason why a certificate carries no usable identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The certificate cannot be parsed, although the handshake accepted it.
    #[error("client certificate: cannot be parsed")]
    Unreadable,
    /// The number of URI subject alternative names, which is not 1.
    #[error("client certificate: must have exactly one URI as subject alternative name, found {0}")]
    UriCount(usize),
    /// The URI, which does not have the expected form.
    #[error("client certificate: {0:?}: must be spiffe://<trust domain>/ns/<namespace>/sa/<service account>")]
    UriFormat(String),
    /// The trust domain, which is not configured.
    #[error("client certificate: trust domain {0:?} is not one of --trust-domain")]
    TrustDomain(String),
}

/// Reads the identity from a DER certificate, whose trust domain must be one of `trust_domains`.
///
/// # Errors
/// Returns why the certificate carries no accepted identity.
pub fn parse_certificate(
    certificate: &[u8],
    trust_domains: &[String],
) -> Result<CertificateIdentity, IdentityError> {
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| IdentityError::Unreadable)?;
    let names = certificate.subject_alternative_name().map_err(|_| IdentityError::Unreadable)?;
    let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
    let uris: Vec<&str> = names
        .iter()
        .filter_map(|name| match name {
            GeneralName::URI(uri) => Some(*uri),
            _ => None,
        })
        .collect();
    let [uri] = uris.as_slice() else { return Err(IdentityError::UriCount(uris.len())) };
    let identity = parse_uri(uri, trust_domains)?;
    Ok(CertificateIdentity { identity, not_after: certificate.validity().not_after.timestamp() })
}

/// Parses a URI such as `spiffe://cluster.local/ns/shop/sa/payments`.
fn parse_uri(uri: &str, trust_domains: &[String]) -> Result<Identity, IdentityError> {
    let form = || IdentityError::UriFormat(printable(uri));
    let path = uri.strip_prefix("spiffe://").ok_or_else(form)?;
    let parts: Vec<&str> = path.split('/').collect();
    let [trust_domain, "ns", namespace, "sa", service_account] = parts.as_slice() else { return Err(form()) };
    let is_name = |name: &str| {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
        !name.is_empty() && name.len() <= 253 && name.bytes().all(letter)
    };
    if !is_name(namespace) || !is_name(service_account) {
        return Err(form());
    }
    if !trust_domains.iter().any(|known| known == trust_domain) {
        return Err(IdentityError::TrustDomain(printable(trust_domain)));
    }
    let (namespace, service_account) = ((*namespace).to_owned(), (*service_account).to_owned());
    Ok(Identity { namespace, service_account })
}

#[cfg(test)]
mod tests;
