//! A certificate authority for tests that signs every request.

use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

/// Number of the next authority.
static NUMBER: AtomicU32 = AtomicU32::new(1);

pub struct Authority(pub(crate) CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key as PEM.
pub struct Issued {
    /// The certificate alone, without that of the authority.
    pub certificate: String,
    /// PKCS #8.
    pub key: String,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Authorities with the same name would be confused: verification picks the wrong one and
        // reports a bad signature.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        parameters.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(parameters, key).expect("an authority"))
    }

    /// Returns the certificate of the authority as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for server or client authentication with one name: a `spiffe://` URI, a
    /// DNS name or an address.
    ///
    /// # Panics
    /// If `name` is none of these.
    pub fn sign(&self, name: &str) -> Issued {
        self.sign_all(&[name])
    }

    /// Like [`Authority::sign`], with several names; the first one is also the subject.
    ///
    /// # Panics
    /// If there is no name, or one is invalid.
    pub fn sign_all(&self, names: &[&str]) -> Issued {
        self.issued(names, |_| {})
    }

    /// Like [`Authority::sign`], for a certificate that has expired.
    ///
    /// # Panics
    /// If `name` is invalid.
    pub fn sign_expired(&self, name: &str) -> Issued {
        self.issued(&[name], |parameters| parameters.not_after = rcgen::date_time_ymd(2001, 1, 1))
    }

    fn issued(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        // Envoy treats a certificate with the same subject and issuer as self-signed and rejects
        // it, so the subject differs.
        parameters.distinguished_name.push(DnType::CommonName, names[0]);
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        parameters.subject_alt_names = names.iter().copied().map(alternative_name).collect();
        change(&mut parameters);
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.0).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

fn alternative_name(name: &str) -> SanType {
    match name.parse() {
        Ok(ip) => SanType::IpAddress(ip),
        Err(_) if name.starts_with("spiffe://") => SanType::URI(name.try_into().expect("ASCII")),
        Err(_) => SanType::DnsName(name.try_into().expect("ASCII")),
    }
}
