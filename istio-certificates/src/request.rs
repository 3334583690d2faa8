//! Certificate signing requests.

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, RsaKeySize,
};

use crate::identity::WorkloadIdentity;
use crate::key::KeyKind;

/// The object identifier of the extension for subject alternative names, RFC 5280 section 4.2.1.6.
const SUBJECT_ALTERNATIVE_NAME: &[u64] = &[2, 5, 29, 17];
/// The DER tag of a sequence.
const SEQUENCE: u8 = 0x30;
/// The DER tag of a URI among alternative names.
const URI: u8 = 0x86;

/// A key, and the request for a certificate of it; both as PEM texts.
pub struct SigningRequest {
    pub request: String,
    /// PKCS #8.
    pub key: String,
}

impl SigningRequest {
    /// Creates a key. The request has one empty organization and one critical alternative name, which is what
    /// Istio's registration authority accepts.
    ///
    /// # Errors
    /// If the cryptography fails, for example because the operating system provides no random numbers.
    pub fn new(identity: &WorkloadIdentity, kind: KeyKind) -> Result<Self, rcgen::Error> {
        let key = match kind {
            KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            KeyKind::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
            KeyKind::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
            KeyKind::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyKind::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        }?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, DnValue::PrintableString("".try_into()?));
        let name = der(SEQUENCE, &der(URI, identity.to_string().as_bytes()));
        let mut extension = CustomExtension::from_oid_content(SUBJECT_ALTERNATIVE_NAME, name);
        extension.set_criticality(true);
        params.custom_extensions = vec![extension];
        let request = params.serialize_request(&key)?.pem()?;
        Ok(Self { request, key: key.serialize_pem() })
    }
}

/// Encodes a value of the Distinguished Encoding Rules.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut encoded = vec![tag];
    match length {
        [] => encoded.push(0),
        [short @ 0..0x80] => encoded.push(*short),
        long => {
            // At most eight bytes.
            encoded.push(0x80 | u8::try_from(long.len()).unwrap_or_default());
            encoded.extend_from_slice(long);
        }
    }
    encoded.extend_from_slice(content);
    encoded
}

#[cfg(test)]
mod tests;
