//! A certificate that a CA has issued.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

use crate::pem::{self, Unusable};

/// A certificate with its key; PEM texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// All elements of the answer, that of the CA too.
    pub chain: String,
    pub key: String,
    /// The CA certificates, the last element of the answer.
    pub roots: String,
    pub created: SystemTime,
    pub not_after: SystemTime,
}

/// Why an answer of a CA is not used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("the certificate of the CA's answer: {0}")]
    Unusable(#[from] Unusable),
    #[error("a certificate of the CA's answer cannot be parsed")]
    Unparsable,
    #[error("the CA certificates of the CA's answer cannot be parsed")]
    NoRoots,
    #[error("the certificate of the CA's answer has expired; is the clock right?")]
    Expired,
}

impl Issued {
    /// Checks the answer of a CA to the request for a certificate of this key. `chain` is its elements, the
    /// last of which contains the CA certificates.
    ///
    /// # Errors
    /// If the certificate cannot be used.
    pub fn new(chain: &[String], key: String, now: SystemTime) -> Result<Self, Refused> {
        let roots = chain.last().cloned().unwrap_or_default();
        let chain: String = chain.iter().flat_map(|element| [element.trim(), "\n"]).collect();
        pem::check_pair(&chain, &key)?;
        if pem::certificates(&roots).next().is_none() {
            return Err(Refused::NoRoots);
        }
        if pem::certificates(&chain).count() != pem::count(&chain) {
            return Err(Refused::Unparsable);
        }
        let not_after = pem::not_after(&chain).and_then(|seconds| u64::try_from(seconds).ok());
        let not_after = UNIX_EPOCH + Duration::from_secs(not_after.unwrap_or_default());
        if not_after <= now {
            return Err(Refused::Expired);
        }
        Ok(Self { chain, key, roots, created: now, not_after })
    }

    pub fn is_valid(&self, now: SystemTime) -> bool {
        now < self.not_after
    }

    /// How long the certificate is valid after its creation.
    pub fn lifetime(&self) -> Duration {
        self.not_after.duration_since(self.created).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
