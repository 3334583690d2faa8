//! An Envoy: it subscribes to clusters, to the endpoints of its clusters, and to listeners.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};

use super::super::support::{EDS, content_of};
use super::server::{REJECTED, Resources, TYPES};
use crate::wire::{CLUSTER, LISTENER, Request, Response, Variant, is_complete, put_bytes};

#[derive(Default)]
struct Watch {
    resources: BTreeMap<String, u64>,
    names: BTreeSet<String>,
    version: String,
    nonce: String,
    is_requested: bool,
}

pub(super) struct Envoy {
    variant: Variant,
    watches: BTreeMap<&'static str, Watch>,
    nonces: BTreeSet<String>,
}

impl Envoy {
    pub(super) fn new(variant: Variant) -> Self {
        Self {
            variant,
            watches: TYPES.map(|of_type| (of_type, Watch::default())).into(),
            nonces: BTreeSet::new(),
        }
    }

    pub(super) fn resources(&self) -> Resources {
        self.watches.iter().map(|(of_type, watch)| (*of_type, watch.resources.clone())).collect()
    }

    /// Returns the first requests of a stream.
    pub(super) fn connected(&mut self) -> Vec<Bytes> {
        self.nonces.clear();
        for watch in self.watches.values_mut() {
            watch.nonce.clear();
            watch.is_requested = false;
        }
        let mut requests = vec![self.first(CLUSTER), self.first(LISTENER)];
        if !self.watches[EDS].names.is_empty() {
            requests.push(self.first(EDS));
        }
        requests
    }

    fn first(&mut self, of_type: &'static str) -> Bytes {
        let variant = self.variant;
        let watch = self.watches.get_mut(of_type).unwrap();
        watch.is_requested = true;
        let held = watch.resources.iter().map(|(name, version)| (name.clone(), version.to_string()));
        let request = Request {
            type_url: of_type.to_owned(),
            node: Some(Bytes::from_static(b"\x0a\x01n")),
            version: if variant == Variant::Sotw { watch.version.clone() } else { String::new() },
            subscription: Request::subscription_to(watch.names.iter().map(String::as_str)),
            initial_versions: held.collect(),
            ..Request::default()
        };
        request.encode(variant)
    }

    pub(super) fn response(&mut self, message: &Bytes) -> Vec<Bytes> {
        let response = Response::parse(message, self.variant).unwrap();
        assert!(self.nonces.insert(response.nonce.clone()), "a nonce that was used before");
        let of_type = *TYPES.iter().find(|of_type| **of_type == response.type_url).unwrap();
        let watch = self.watches.get_mut(of_type).unwrap();
        assert!(watch.is_requested, "a type without a request");
        watch.nonce.clone_from(&response.nonce);
        let contents: BTreeMap<String, u64> = response
            .resources
            .iter()
            .map(|resource| (resource.name.clone(), content_of(&resource.any).parse().unwrap()))
            .collect();
        if contents.values().any(|content| *content >= REJECTED) {
            let mut error = BytesMut::new();
            put_bytes(&mut error, 2, b"rejected");
            return vec![self.acknowledge(of_type, Some(error.freeze()))];
        }
        watch.version.clone_from(&response.version);
        if self.variant == Variant::Sotw && is_complete(of_type) {
            watch.resources.clear();
        }
        for name in &response.removed {
            watch.resources.remove(name);
        }
        let is_wanted = |name: &String| is_complete(of_type) || watch.names.contains(name);
        watch.resources.extend(contents.into_iter().filter(|(name, _)| is_wanted(name)));
        let mut requests = vec![self.acknowledge(of_type, None)];
        if of_type == CLUSTER {
            requests.extend(self.follow_clusters());
        }
        requests
    }

    fn acknowledge(&self, of_type: &str, error: Option<Bytes>) -> Bytes {
        let watch = &self.watches[of_type];
        let request =
            Request { type_url: of_type.to_owned(), nonce: watch.nonce.clone(), error, ..Request::default() };
        match self.variant {
            Variant::Sotw => Request {
                version: watch.version.clone(),
                subscription: Request::subscription_to(watch.names.iter().map(String::as_str)),
                ..request
            },
            Variant::Delta => request,
        }
        .encode(self.variant)
    }

    /// Subscribes to the endpoints of the clusters.
    fn follow_clusters(&mut self) -> Option<Bytes> {
        let names: BTreeSet<String> = self.watches[CLUSTER].resources.keys().cloned().collect();
        let variant = self.variant;
        let watch = self.watches.get_mut(EDS).unwrap();
        if names == watch.names {
            return None;
        }
        let before = std::mem::replace(&mut watch.names, names);
        watch.resources.retain(|name, _| watch.names.contains(name));
        if !watch.is_requested {
            return Some(self.first(EDS));
        }
        if variant == Variant::Sotw {
            return Some(self.acknowledge(EDS, None));
        }
        let mut subscription = BytesMut::new();
        for name in watch.names.difference(&before) {
            put_bytes(&mut subscription, 3, name.as_bytes());
        }
        for name in before.difference(&watch.names) {
            put_bytes(&mut subscription, 4, name.as_bytes());
        }
        let request =
            Request { type_url: EDS.to_owned(), subscription: subscription.freeze(), ..Request::default() };
        Some(request.encode(variant))
    }
}
