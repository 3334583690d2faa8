//! Serves the workload's certificate as `default` and its CA as `ROOTCA`, over SDS. These are the names
//! that Istio uses.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use serving::grpc::{self, Messages};
use serving::tls::TlsError;
use serving::watched::Watched;
use tokio::sync::watch;
use tracing::{debug, warn};
use workload_health::text::printable;
use xds::type_url::SECRET;
use xds::{Request, ResourceRef, ResponseHead, Variant, any, put_bytes};

use super::new_stream::Responses;
use super::tls::{TlsContent, TlsFiles};

/// How often the files are read. A new certificate reaches Envoy within a second.
const INTERVAL: Duration = Duration::from_millis(500);
const CERTIFICATE: &str = "default";
const AUTHORITY: &str = "ROOTCA";

/// The encoded secrets of one version of the files.
pub(super) struct Secrets {
    /// Each as `google.protobuf.Any`; there is no certificate if only a token authenticates the agent.
    certificate: Option<Bytes>,
    authority: Bytes,
}

impl Secrets {
    /// Returns an error if the certificate and the key do not belong together.
    fn new(content: &TlsContent) -> Result<Self, TlsError> {
        content.check()?;
        let certificate = content.certificate_and_key().map(|[cert, key]| {
            let pair = message(&[(1, &data_source(cert)), (2, &data_source(key))]);
            any(SECRET, &message(&[(1, CERTIFICATE.as_bytes()), (2, &pair)]))
        });
        let validation = message(&[(1, &data_source(content.ca()))]);
        let authority = any(SECRET, &message(&[(1, AUTHORITY.as_bytes()), (4, &validation)]));
        Ok(Self { certificate, authority })
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        match name {
            CERTIFICATE => self.certificate.as_deref(),
            AUTHORITY => Some(&self.authority),
            _ => None,
        }
    }
}

/// Encodes `Secret`, `TlsCertificate` or `CertificateValidationContext`, whose fields are messages and
/// strings only.
fn message(fields: &[(u64, &[u8])]) -> Bytes {
    let mut to = BytesMut::new();
    for (number, content) in fields {
        put_bytes(&mut to, *number, content);
    }
    to.freeze()
}

/// Encodes `DataSource` with `inline_bytes`.
fn data_source(content: &[u8]) -> Bytes {
    message(&[(2, content)])
}

/// Reads the files, and reads them again when they change. `None` without files. Must be called in a
/// runtime.
pub(super) fn watch(files: Option<TlsFiles>) -> Result<Option<watch::Receiver<Arc<Secrets>>>, TlsError> {
    let Some(files) = files else { return Ok(None) };
    let content = files.read()?;
    let first = Secrets::new(&content)?;
    let read = move || files.read().map_err(|error| error.to_string());
    let parse = |content: &TlsContent| Secrets::new(content).map_err(|error| error.to_string());
    let watched = Watched::new(content, read, parse).every(INTERVAL);
    Ok(Some(watched.spawn(first, "certificate for Envoy", |_| {})))
}

/// Serves one SDS stream until Envoy closes it.
pub(super) async fn serve(
    variant: Variant,
    mut requests: Messages<Incoming>,
    responses: Responses,
    mut secrets: watch::Receiver<Arc<Secrets>>,
) {
    let mut names: Vec<String> = Vec::new();
    let mut version = 0_u64;
    loop {
        let changed = tokio::select! {
            request = requests.next() => {
                let Ok(request) = request else { return };
                let Ok(request) = Request::parse(&request, variant) else { return };
                let Some(changed) = subscribe(&mut names, request, variant) else { continue };
                changed
            }
            changed = secrets.changed() => {
                if changed.is_err() {
                    return;
                }
                names.clone()
            }
        };
        version += 1;
        let current = secrets.borrow_and_update().clone();
        let Some(response) = response(&current, &changed, version, variant) else { continue };
        if responses.send(Ok(grpc::parts(response, Bytes::new()))).await.is_err() {
            return;
        }
    }
}

/// Applies a request, and returns the names that Envoy waits for.
fn subscribe(names: &mut Vec<String>, request: Request, variant: Variant) -> Option<Vec<String>> {
    if let Some(text) = request.error_text().unwrap_or_else(|_| Some(String::new())) {
        warn!(text = printable(&text), "certificate rejected by Envoy");
    }
    let is_new = |name: &String| !names.contains(name);
    let new: Vec<String> = request.subscribe.iter().filter(|name| is_new(name)).cloned().collect();
    for name in &new {
        if ![CERTIFICATE, AUTHORITY].contains(&name.as_str()) {
            warn!(
                name = printable(name),
                "unknown secret requested by Envoy; it can only be default or ROOTCA"
            );
        }
    }
    match variant {
        Variant::Sotw => *names = request.subscribe,
        Variant::Delta => {
            names.extend(new.iter().cloned());
            names.retain(|name| !request.unsubscribe.contains(name));
        }
    }
    // In state of the world, a response contains all names.
    (!new.is_empty()).then(|| if variant == Variant::Sotw { names.clone() } else { new })
}

fn response(secrets: &Secrets, names: &[String], version: u64, variant: Variant) -> Option<Bytes> {
    let found: Vec<(&str, &[u8])> =
        names.iter().filter_map(|name| Some((name.as_str(), secrets.get(name)?))).collect();
    if found.is_empty() {
        return None;
    }
    debug!(version, secrets = found.len(), "certificates sent to Envoy");
    let version = version.to_string();
    let resource = |(name, any)| ResourceRef { name, version: &version, any };
    let head = ResponseHead { type_url: SECRET, version: &version, nonce: &version };
    Some(head.encode(variant, found.into_iter().map(resource), []))
}
