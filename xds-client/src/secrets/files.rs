//! The workload's certificate as `default` and its CA as `ROOTCA`, the names that Istio uses.

use std::sync::Arc;
use std::time::Duration;

use serving::tls::TlsError;
use serving::watched::Watched;

use super::{SecretMap, Secrets, Subscription, encode_certificate, encode_roots};
use crate::tls::{TlsContent, TlsFiles};

/// How often the files are read. A new certificate reaches Envoy within a second.
const INTERVAL: Duration = Duration::from_millis(500);
const CERTIFICATE: &str = "default";
const AUTHORITY: &str = "ROOTCA";

/// Reads the files, and reads them again when they change. Must be called in a runtime.
pub(crate) fn watch_files(files: TlsFiles) -> Result<Secrets, TlsError> {
    let content = files.read()?;
    let first = secrets(&content)?;
    let read = move || files.read().map_err(|error| error.to_string());
    let parse = |content: &TlsContent| secrets(content).map_err(|error| error.to_string());
    let watched = Watched::new(content, read, parse).every(INTERVAL);
    Ok(Secrets {
        current: watched.spawn(first, "certificate for Envoy", |_| {}),
        request: Arc::new(|name| {
            [CERTIFICATE, AUTHORITY].contains(&name).then(|| Arc::new(()) as Subscription)
        }),
    })
}

/// Returns an error if the certificate and the key do not belong together. There is no certificate if only
/// a token authenticates the agent.
fn secrets(content: &TlsContent) -> Result<SecretMap, TlsError> {
    content.check()?;
    let mut secrets = SecretMap::new();
    secrets.insert(AUTHORITY.to_owned(), encode_roots(AUTHORITY, content.ca(), None));
    if let Some([chain, key]) = content.certificate_and_key() {
        secrets.insert(CERTIFICATE.to_owned(), encode_certificate(CERTIFICATE, chain, key));
    }
    Ok(secrets)
}
