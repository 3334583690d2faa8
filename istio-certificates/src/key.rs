//! The kinds of keys.

use thiserror::Error;

/// The key of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Rsa2048,
    Rsa3072,
    Rsa4096,
    EcdsaP256,
    EcdsaP384,
}

/// A kind of key that cannot be created. The text names the variable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnsupportedKey {
    #[error("WORKLOAD_RSA_KEY_SIZE = {0}: must be 2048, 3072 or 4096")]
    RsaSize(String),
    #[error("ECC_SIGNATURE_ALGORITHM = {0:?}: must be ECDSA")]
    SignatureAlgorithm(String),
}

impl KeyKind {
    /// Reads `ECC_SIGNATURE_ALGORITHM`, `ECC_CURVE` and `WORKLOAD_RSA_KEY_SIZE`, where `variable` returns the
    /// value of a variable. As in Istio, an unknown curve is P256, and a size that is not a number is 2048.
    ///
    /// # Errors
    /// A signature algorithm that Istio's agent cannot use either, or a size of RSA keys that only Istio's
    /// agent can create.
    pub fn from_variables<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Result<Self, UnsupportedKey> {
        match (variable("ECC_SIGNATURE_ALGORITHM").unwrap_or_default(), variable("ECC_CURVE")) {
            ("ECDSA", Some("P384")) => return Ok(Self::EcdsaP384),
            ("ECDSA", _) => return Ok(Self::EcdsaP256),
            ("", _) => {}
            (other, _) => return Err(UnsupportedKey::SignatureAlgorithm(other.to_owned())),
        }
        let size = variable("WORKLOAD_RSA_KEY_SIZE").unwrap_or_default();
        match size.parse::<i64>() {
            Ok(2048) | Err(_) => Ok(Self::Rsa2048),
            Ok(3072) => Ok(Self::Rsa3072),
            Ok(4096) => Ok(Self::Rsa4096),
            Ok(_) => Err(UnsupportedKey::RsaSize(size.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests;
