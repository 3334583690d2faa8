//! The webhook's own certificate authority, as a value that all replicas share: renews the CA and
//! signs leaf certificates.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use super::x509::not_after;

/// Validity of a CA certificate.
pub const CA_VALIDITY: Duration = Duration::days(365);
/// Validity of a leaf certificate.
pub const LEAF_VALIDITY: Duration = Duration::days(30);
/// How long the API server must have trusted the next CA before that CA signs leaf certificates.
pub const BUNDLE_PROPAGATION: Duration = Duration::minutes(10);
/// How long before its creation a certificate becomes valid, since clocks differ.
const BACKDATE: Duration = Duration::hours(1);

/// A CA that cannot be created or parsed.
#[derive(Debug, thiserror::Error)]
#[error("certificate authority: {0}")]
pub struct AuthorityError(String);

/// A certificate with its private key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
    /// Creation time in seconds since 1970.
    pub created_at: i64,
}

/// Content of the Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// The CA that signs.
    pub current: Pair,
    /// The CA that will sign next; it is in the bundle since its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Pair>,
    /// The previous CA: its certificate, and when the last leaf that it signed expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<(String, i64)>,
}

impl Authority {
    /// Creates a new CA.
    pub fn new(now: OffsetDateTime) -> Result<Self, AuthorityError> {
        Ok(Self { current: ca(now)?, next: None, previous: None })
    }

    /// Returns the certificates that the API server must trust, PEM.
    pub fn bundle(&self) -> String {
        let previous = self.previous.iter().map(|(certificate, _)| certificate);
        let next = self.next.iter().map(|next| &next.certificate);
        std::iter::once(&self.current.certificate).chain(next).chain(previous).map(String::as_str).collect()
    }

    /// Returns the next state, or `None` if nothing changes. `published` is true if the API server
    /// has the current bundle. A CA that has expired is replaced at once: no API server accepts what it
    /// signs.
    pub fn advance(&self, now: OffsetDateTime, published: bool) -> Result<Option<Self>, AuthorityError> {
        if is_expired(&self.current, now) {
            let next = self.next.clone().filter(|next| !is_expired(next, now));
            let current = next.map_or_else(|| ca(now), Ok)?;
            return Ok(Some(Self { current, next: None, previous: None }));
        }
        let mut after = self.clone();
        if after.previous.as_ref().is_some_and(|(_, until)| *until <= now.unix_timestamp()) {
            after.previous = None;
        }
        match &self.next {
            None if is_due(self.current.created_at, CA_VALIDITY, now) => after.next = Some(ca(now)?),
            Some(next)
                if published
                    && next.created_at + BUNDLE_PROPAGATION.whole_seconds() <= now.unix_timestamp() =>
            {
                let until = (now + LEAF_VALIDITY).unix_timestamp();
                after.previous = Some((after.current.certificate.clone(), until));
                after.current = next.clone();
                after.next = None;
            }
            _ => {}
        }
        Ok((after != *self).then_some(after))
    }

    /// Signs a leaf certificate for `names` with the current CA, unless that has expired.
    pub fn leaf(&self, names: &[String], now: OffsetDateTime) -> Result<Pair, AuthorityError> {
        if is_expired(&self.current, now) {
            return Err(AuthorityError("has expired; it is renewed when the API server responds".to_owned()));
        }
        let key = KeyPair::from_pem(&self.current.key).map_err(error)?;
        let issuer = Issuer::from_ca_cert_pem(&self.current.certificate, key).map_err(error)?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(error)?;
        params.distinguished_name = distinguished_name(names.first().map_or("app-health", String::as_str));
        params.not_before = now - BACKDATE;
        let end = now + LEAF_VALIDITY;
        let end_of_ca = not_after(self.current.certificate.as_bytes());
        let end_of_ca = end_of_ca.and_then(|end| OffsetDateTime::from_unix_timestamp(end).ok());
        params.not_after = end_of_ca.map_or(end, |end_of_ca| end.min(end_of_ca));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(error)?;
        let certificate = params.signed_by(&key, &issuer).map_err(error)?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            created_at: now.unix_timestamp(),
        })
    }
}

/// True if a certificate is due for renewal: two thirds of its validity have passed.
pub fn is_due(created_at: i64, validity: Duration, now: OffsetDateTime) -> bool {
    created_at + validity.whole_seconds() / 3 * 2 <= now.unix_timestamp()
}

fn is_expired(pair: &Pair, now: OffsetDateTime) -> bool {
    not_after(pair.certificate.as_bytes()).is_none_or(|end| end <= now.unix_timestamp())
}

fn ca(now: OffsetDateTime) -> Result<Pair, AuthorityError> {
    let mut params = CertificateParams::default();
    // The name is unique, since clients may look up the issuer of a leaf by name.
    params.distinguished_name = distinguished_name(&format!("app-health webhook {}", now.unix_timestamp()));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.not_before = now - BACKDATE;
    params.not_after = now + CA_VALIDITY;
    // rcgen's default is P-256.
    let key = KeyPair::generate().map_err(error)?;
    let certificate = params.self_signed(&key).map_err(error)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem(), created_at: now.unix_timestamp() })
}

fn distinguished_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn error(error: rcgen::Error) -> AuthorityError {
    AuthorityError(error.to_string())
}

#[cfg(test)]
mod tests;
