//! The webhook's own certificate authority, as a value that all replicas share: what to do with it now, and the leaves that it signs.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use serving::tls;

/// How long a CA is good for.
pub const CA_LIFE: Duration = Duration::days(365);
/// How long a leaf is good for.
pub const LEAF_LIFE: Duration = Duration::days(30);
/// How long the API server has had the next CA before a leaf of it is served.
pub const ANNOUNCED: Duration = Duration::minutes(10);
/// Clocks differ: a certificate is good a little before it is made.
const EARLY: Duration = Duration::hours(1);

/// A CA that cannot be made, or cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("certificate authority: {0}")]
pub struct AuthorityError(String);

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// PEM.
    pub certificate: String,
    /// PEM.
    pub key: String,
    /// When it was made, in seconds since 1970.
    pub made: i64,
}

/// What the Secret holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// The one that signs.
    pub current: Pair,
    /// The one that will, known to the API server since it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Pair>,
    /// The one that did: its certificate, and when its last leaf ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<(String, i64)>,
}

impl Authority {
    /// A new one.
    pub fn new(now: OffsetDateTime) -> Result<Self, AuthorityError> {
        Ok(Self { current: ca(now)?, next: None, former: None })
    }

    /// The certificates that the API server has to know, PEM.
    pub fn bundle(&self) -> String {
        let former = self.former.iter().map(|(certificate, _)| certificate);
        let next = self.next.iter().map(|next| &next.certificate);
        std::iter::once(&self.current.certificate).chain(next).chain(former).map(String::as_str).collect()
    }

    /// What it should be now; `None` if it is that already. `announced`: the API server has its bundle.
    pub fn step(&self, now: OffsetDateTime, announced: bool) -> Result<Option<Self>, AuthorityError> {
        let mut after = self.clone();
        if after.former.as_ref().is_some_and(|(_, until)| *until <= now.unix_timestamp()) {
            after.former = None;
        }
        match &self.next {
            None if is_due(self.current.made, CA_LIFE, now) => after.next = Some(ca(now)?),
            Some(next) if announced && next.made + ANNOUNCED.whole_seconds() <= now.unix_timestamp() => {
                let until = (now + LEAF_LIFE).unix_timestamp();
                after.former = Some((after.current.certificate.clone(), until));
                after.current = next.clone();
                after.next = None;
            }
            _ => {}
        }
        Ok((after != *self).then_some(after))
    }

    /// A leaf for `names`, signed by the current CA.
    pub fn leaf(&self, names: &[String], now: OffsetDateTime) -> Result<Pair, AuthorityError> {
        let key = KeyPair::from_pem(&self.current.key).map_err(error)?;
        let issuer = Issuer::from_ca_cert_pem(&self.current.certificate, key).map_err(error)?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(error)?;
        params.distinguished_name = named(names.first().map_or("app-health", String::as_str));
        params.not_before = now - EARLY;
        let end = tls::not_after(self.current.certificate.as_bytes()).unwrap_or(i64::MAX);
        params.not_after =
            (now + LEAF_LIFE).min(OffsetDateTime::from_unix_timestamp(end).unwrap_or(now + LEAF_LIFE));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(error)?;
        let certificate = params.signed_by(&key, &issuer).map_err(error)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem(), made: now.unix_timestamp() })
    }
}

/// Whether something made then is to be made anew: two thirds of its life are over.
pub fn is_due(made: i64, life: Duration, now: OffsetDateTime) -> bool {
    made + life.whole_seconds() / 3 * 2 <= now.unix_timestamp()
}

fn ca(now: OffsetDateTime) -> Result<Pair, AuthorityError> {
    let mut params = CertificateParams::default();
    // Two CAs of one name and other keys confuse whoever looks for a leaf's issuer by name.
    params.distinguished_name = named(&format!("app-health webhook {}", now.unix_timestamp()));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.not_before = now - EARLY;
    params.not_after = now + CA_LIFE;
    // rcgen's default is P-256.
    let key = KeyPair::generate().map_err(error)?;
    let certificate = params.self_signed(&key).map_err(error)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem(), made: now.unix_timestamp() })
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn error(error: rcgen::Error) -> AuthorityError {
    AuthorityError(error.to_string())
}

#[cfg(test)]
mod tests;
