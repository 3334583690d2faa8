//! A certificate authority of a test: signs whatever it is asked for.

use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

/// How many there were.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// An authority.
pub struct Authority(pub(crate) CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, PEM.
pub struct Issued {
    /// Without the authority's.
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
    /// A new one.
    ///
    /// # Panics
    /// Never.
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Of two with one name, the wrong one is taken for a forger.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        parameters.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(parameters, key).expect("an authority"))
    }

    /// Its own certificate, PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for either end of a connection, with one name: `spiffe://…`, a DNS name or an address.
    ///
    /// # Panics
    /// When it is no name.
    pub fn sign(&self, name: &str) -> Issued {
        self.sign_all(&[name])
    }

    /// The same with several names, of which the first is the subject too.
    ///
    /// # Panics
    /// When there is none, or one is no name.
    pub fn sign_all(&self, names: &[&str]) -> Issued {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        // A subject of its own: Envoy takes a certificate that is called like its issuer for a self-signed one.
        parameters.distinguished_name.push(DnType::CommonName, names[0]);
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        parameters.subject_alt_names = names.iter().copied().map(alternative_name).collect();
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
