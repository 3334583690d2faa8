//! A type that a peer requests and that this server does not serve. The peer gets an empty set: an
//! Envoy that requests listeners is not ready before it has a response.
//!
//! Only the first request of a type and new names get a response. A peer that already has a version
//! has it from another server and keeps it: an empty set would delete its resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::message::{ResourceSubscription, Response, TypeUrl, Version};
use crate::snapshot::hash;

/// Name that subscribes to all resources.
const WILDCARD: &str = "*";
/// Maximum size of the names that one response reports as missing. Further names get no response.
const NAMES_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct UnservedType {
    /// Hash of the names of the last request, so that the names need no memory. `None` before the
    /// first request.
    names: Option<u64>,
    /// Nonce of the response that is neither acknowledged nor rejected.
    in_flight: Option<String>,
    /// The names that the next response reports as missing (incremental variant only); `None` if no
    /// response is due.
    missing: Option<BTreeSet<Arc<str>>>,
}

impl UnservedType {
    /// Applies a request. Returns true if it acknowledges or rejects the response in flight.
    pub(super) fn request(&mut self, subscription: ResourceSubscription, nonce: &str) -> bool {
        let is_reply = self.in_flight.take_if(|sent| sent == nonce).is_some();
        match subscription {
            ResourceSubscription::Sotw { version, names } => {
                let names: BTreeSet<String> = names.into_iter().collect();
                let parts = names.iter().flat_map(|name| [name.as_bytes(), b"\0"]);
                let names = Some(hash(parts));
                let before = std::mem::replace(&mut self.names, names);
                let has_resources = before.is_none() && !version.is_empty();
                if before != names && !has_resources {
                    self.missing.get_or_insert_default();
                }
            }
            ResourceSubscription::Delta { subscribe, initial, .. } => {
                if self.names.replace(0).is_none() || !subscribe.is_empty() {
                    let missing = self.missing.get_or_insert_default();
                    let mut bytes: usize = missing.iter().map(|name| name.len()).sum();
                    for name in subscribe {
                        bytes = bytes.saturating_add(name.len());
                        if name != WILDCARD && bytes <= NAMES_BYTES && !initial.contains_key(&name) {
                            missing.insert(name.into());
                        }
                    }
                }
            }
        }
        is_reply
    }

    /// Returns the next response with this nonce, if one is due.
    pub(super) fn respond(&mut self, type_url: &TypeUrl, nonce: String) -> Option<Response> {
        if self.in_flight.is_some() {
            return None;
        }
        let removed = self.missing.take()?.into_iter().collect();
        self.in_flight = Some(nonce.clone());
        let version = Version { hash: hash([]), endpoints: None }.to_string();
        Some(Response { type_url: type_url.clone(), version, nonce, resources: Vec::new(), removed })
    }
}
