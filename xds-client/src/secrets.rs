//! SDS: the secrets that Envoy asks for by name.

mod files;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use serving::grpc::{self, Messages};
use tokio::sync::watch;
use tracing::{debug, warn};
use workload_health::text::printable;
use xds::type_url::SECRET;
use xds::{Request, ResourceRef, ResponseHead, Variant, any, put_bytes};

use super::new_stream::Responses;
use agent_state::metrics::Metrics;
pub(crate) use files::watch_files;

/// Encoded secrets, as `google.protobuf.Any`, by their names.
pub type SecretMap = BTreeMap<String, Bytes>;

/// Where secrets come from.
#[derive(Clone)]
pub struct Secrets {
    /// The secrets that exist now.
    pub current: watch::Receiver<Arc<SecretMap>>,
    /// Called with each name that a stream subscribes to. `None` if there will never be a secret of this name.
    pub request: Arc<Subscribe>,
}

type Subscribe = dyn Fn(&str) -> Option<Subscription> + Send + Sync;

/// What a stream keeps for as long as it subscribes to a secret.
pub type Subscription = Arc<dyn Any + Send + Sync>;

/// Encodes a certificate and its key; both are PEM texts.
pub fn encode_certificate(name: &str, chain: &[u8], key: &[u8]) -> Bytes {
    let pair = message(&[(1, &data_source(chain)), (2, &data_source(key))]);
    any(SECRET, &message(&[(1, name.as_bytes()), (2, &pair)]))
}

/// Encodes CA certificates and certificate revocation lists, which are PEM texts.
pub fn encode_roots(name: &str, roots: &[u8], revoked: Option<&[u8]>) -> Bytes {
    let mut fields = vec![(1, data_source(roots))];
    fields.extend(revoked.map(|lists| (7, data_source(lists))));
    let fields: Vec<(u64, &[u8])> = fields.iter().map(|(number, content)| (*number, &**content)).collect();
    any(SECRET, &message(&[(1, name.as_bytes()), (4, &message(&fields))]))
}

/// Encodes a message whose fields are messages and strings only.
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

/// A secret of a stream.
struct Subscribed {
    name: String,
    /// What was sent last.
    sent: Option<Bytes>,
    _subscription: Option<Subscription>,
}

/// Serves one SDS stream until Envoy closes it.
pub(super) async fn serve(
    variant: Variant,
    mut requests: Messages<Incoming>,
    responses: Responses,
    mut secrets: Secrets,
    metrics: Arc<Metrics>,
) {
    let mut subscribed: Vec<Subscribed> = Vec::new();
    let mut version = 0_u64;
    loop {
        tokio::select! {
            request = requests.next() => {
                let Ok(request) = request else { return };
                let Ok(request) = Request::parse(&request, variant) else { return };
                subscribe(&mut subscribed, request, variant, &*secrets.request, &metrics);
            }
            changed = secrets.current.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
        let current = secrets.current.borrow_and_update().clone();
        let Some(response) = response(&mut subscribed, &current, version + 1, variant) else { continue };
        version += 1;
        if responses.send(Ok(grpc::parts(response, Bytes::new()))).await.is_err() {
            return;
        }
    }
}

/// Applies a request. `begin` returns `None` for names that no secret will ever have.
fn subscribe(
    subscribed: &mut Vec<Subscribed>,
    request: Request,
    variant: Variant,
    begin: &Subscribe,
    metrics: &Metrics,
) {
    if let Some(text) = request.error_text().unwrap_or_else(|_| Some(String::new())) {
        warn!(text = printable(&text), "certificate rejected by Envoy");
        metrics.vm.xds.secret_rejected();
    }
    match variant {
        Variant::Sotw => subscribed.retain(|secret| request.subscribe.contains(&secret.name)),
        Variant::Delta => subscribed.retain(|secret| !request.unsubscribe.contains(&secret.name)),
    }
    for name in request.subscribe {
        if subscribed.iter().any(|secret| secret.name == name) {
            continue;
        }
        let subscription = begin(&name);
        if subscription.is_none() {
            warn!(name = printable(&name), "unknown secret requested by Envoy");
            metrics.vm.xds.secret_unknown();
        }
        subscribed.push(Subscribed { name, sent: None, _subscription: subscription });
    }
}

/// Returns a response if a secret has changed. In state of the world, it contains all of them.
fn response(
    subscribed: &mut [Subscribed],
    current: &SecretMap,
    version: u64,
    variant: Variant,
) -> Option<Bytes> {
    let mut changed: Vec<usize> = Vec::new();
    for (index, secret) in subscribed.iter_mut().enumerate() {
        if let Some(found) = current.get(&secret.name).filter(|found| secret.sent.as_ref() != Some(*found)) {
            secret.sent = Some(found.clone());
            changed.push(index);
        }
    }
    if changed.is_empty() {
        return None;
    }
    debug!(version, secrets = changed.len(), "certificates sent to Envoy");
    let version = version.to_string();
    let resources = subscribed.iter().enumerate().filter_map(|(index, secret)| {
        let any = secret.sent.as_deref().filter(|_| variant == Variant::Sotw || changed.contains(&index))?;
        Some(ResourceRef { name: &secret.name, version: &version, any })
    });
    let head = ResponseHead { type_url: SECRET, version: &version, nonce: &version };
    Some(head.encode(variant, resources, []))
}

#[cfg(test)]
mod tests;
