//! A client certificate that need not exist, for servers that accept a token in its place.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use serving::tls::{Pem, TlsError};
use tracing::{debug, warn};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::ClientFiles;

/// Reads the files at each handshake, and presents the certificate unless it has expired.
#[derive(Debug)]
pub(super) struct FileResolver(pub(super) ClientFiles);

impl ResolvesClientCert for FileResolver {
    fn resolve(&self, issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let Self(ClientFiles { cert, key, .. }) = self;
        if !cert.exists() {
            debug!(file = %cert.display(), "no client certificate yet");
            return None;
        }
        match read(cert, key) {
            Ok(pair) if !is_accepted(&pair.cert, issuers) => {
                debug!(file = %cert.display(), "client certificate not used: the server accepts those of other CAs");
                None
            }
            Ok(pair) => Some(Arc::new(pair)),
            Err(error) => {
                warn!(error, "client certificate not used, only the token authenticates");
                None
            }
        }
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn read(cert: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let text = |error: TlsError| error.to_string();
    let chain = Pem::read("client certificate", cert).and_then(|pem| pem.certificates()).map_err(text)?;
    if chain.first().and_then(not_after).is_none_or(|end| end <= now()) {
        return Err(format!("{}: the certificate has expired", cert.display()));
    }
    let key = Pem::read("key of the client certificate", key).and_then(|pem| pem.key()).map_err(text)?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|error| error.to_string())
}

/// Returns true if a certificate of the chain is issued by one of these subjects, in DER, or the server names none.
/// It would end the handshake with any other certificate, while it may accept the token.
fn is_accepted(chain: &[CertificateDer], issuers: &[&[u8]]) -> bool {
    let is_named = |certificate: &CertificateDer| {
        X509Certificate::from_der(certificate)
            .is_ok_and(|(_, certificate)| issuers.contains(&certificate.issuer().as_raw()))
    };
    issuers.is_empty() || chain.iter().any(is_named)
}

/// Returns when a certificate expires, in seconds since 1970.
fn not_after(certificate: &CertificateDer) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

#[expect(clippy::disallowed_methods, reason = "certificates expire by the clock of the machine")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
