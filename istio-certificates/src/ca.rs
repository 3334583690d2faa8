//! The messages of `istio.v1.auth.IstioCertificateService/CreateCertificate`, which istiod serves.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use xds::{Malformed, fields, put_bytes, put_integer};

/// The path of the method.
pub const PATH: &str = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
/// The key of the metadata that tells istiod which signer of Kubernetes signs.
const CERT_SIGNER: &str = "CertSigner";

/// Encodes an `IstioCertificateRequest`. `signer` is the value of `ISTIO_META_CERT_SIGNER`, or empty.
pub fn encode_request(request: &str, lifetime: Duration, signer: &str) -> Bytes {
    let message = |fields: &[(u64, &[u8])]| {
        let mut to = BytesMut::new();
        for (number, content) in fields {
            put_bytes(&mut to, *number, content);
        }
        to
    };
    // google.protobuf.Struct with a Value that is a string.
    let value = message(&[(3, signer.as_bytes())]);
    let metadata = message(&[(1, &message(&[(1, CERT_SIGNER.as_bytes()), (2, &value)]))]);
    let mut to = message(&[(1, request.as_bytes())]);
    put_integer(&mut to, 3, lifetime.as_secs());
    put_bytes(&mut to, 4, &metadata);
    to.freeze()
}

/// An answer that contains no certificate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidResponse {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The chain consists of at least the certificate and the CA certificate.
    #[error("a chain of {0} certificates, of which the last one has to be that of the CA")]
    Chain(usize),
}

/// Decodes an `IstioCertificateResponse`: PEM texts, of which the first one contains the certificate and the
/// last one the CA certificates.
///
/// # Errors
/// If it is not such a message or has fewer than two elements.
pub fn decode_response(message: &Bytes) -> Result<Vec<String>, InvalidResponse> {
    let mut chain = Vec::new();
    for field in fields(message) {
        let field = field?;
        if field.number == 1 {
            chain.push(field.text()?);
        }
    }
    match chain.len() {
        0 | 1 => Err(InvalidResponse::Chain(chain.len())),
        _ => Ok(chain),
    }
}

#[cfg(test)]
mod tests;
