//! An Envoy: it subscribes to clusters, to the endpoints of its clusters, and to listeners. The rules
//! are those of Envoy's `GrpcMuxImpl` (state of the world) and `NewGrpcMuxImpl` (incremental): while a
//! type is paused, as clusters are while they warm, responses are processed and requests wait. In state
//! of the world, one request then follows, with the newest nonce, the version that was accepted last,
//! and the error of the last rejected response since the request before it, also of an older one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use xds::type_url::{CLUSTER, LISTENER, is_complete};
use xds::{Request, Response, Variant, put_bytes};

use super::super::support::{EDS, content_of};
use super::server::{REJECTED, Resources, TYPES};

/// What a response did.
struct Processed {
    is_accepted: bool,
    names: Vec<String>,
}

#[derive(Default)]
pub(super) struct Watch {
    /// What Envoy runs, with the parts of rejected responses that it has applied.
    pub(super) resources: BTreeMap<String, u64>,
    /// Versions of the resources, in the incremental variant.
    versions: BTreeMap<String, String>,
    /// What Envoy has accepted, as far as its requests say so.
    pub(super) accepted: BTreeMap<String, u64>,
    /// Names in rejected responses, which Envoy may run or not, and which stay stored.
    pub(super) rejected: BTreeSet<String>,
    names: BTreeSet<String>,
    version: String,
    nonce: String,
    /// In state of the world: the error of the next request.
    error: Option<Bytes>,
    /// In state of the world: responses since the last request.
    processed: Vec<Processed>,
    /// In the incremental variant: nonces and errors to send.
    verdicts: VecDeque<(String, Option<Bytes>)>,
    /// In the incremental variant: names to subscribe to and to unsubscribe from.
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
    is_paused: bool,
    /// True if a request waits for the end of the pause.
    is_pending: bool,
    is_requested: bool,
    /// True if a verdict was lost with the stream, and no complete response has followed.
    is_unreported: bool,
}

pub(super) struct Envoy {
    variant: Variant,
    random: fastrand::Rng,
    watches: BTreeMap<&'static str, Watch>,
    nonces: BTreeSet<String>,
}

impl Envoy {
    pub(super) fn new(variant: Variant, random: fastrand::Rng) -> Self {
        Self {
            variant,
            random,
            watches: TYPES.map(|of_type| (of_type, Watch::default())).into(),
            nonces: BTreeSet::new(),
        }
    }

    pub(super) fn resources(&self) -> Resources {
        self.watches.iter().map(|(of_type, watch)| (*of_type, watch.resources.clone())).collect()
    }

    /// Returns the types whose verdicts have all been sent.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&'static str, &Watch)> {
        let is_reported = |watch: &Watch| !watch.is_pending && !watch.is_unreported && watch.is_requested;
        let reported = self.watches.iter().filter(move |(_, watch)| is_reported(watch));
        reported.map(|(of_type, watch)| (*of_type, watch))
    }

    /// Requests that were sent may not arrive.
    pub(super) fn disconnected(&mut self) {
        for watch in self.watches.values_mut() {
            watch.is_unreported = true;
        }
    }

    /// Returns the first requests of a stream.
    pub(super) fn connected(&mut self) -> Vec<Bytes> {
        self.nonces.clear();
        for watch in self.watches.values_mut() {
            watch.nonce.clear();
            watch.processed.clear();
            watch.verdicts.clear();
            watch.is_requested = false;
        }
        let has_endpoints = !self.watches[EDS].names.is_empty();
        let types = [CLUSTER, LISTENER].into_iter().chain(has_endpoints.then_some(EDS));
        types.flat_map(|of_type| self.queue(of_type)).collect()
    }

    pub(super) fn is_paused(&self) -> bool {
        self.watches.values().any(|watch| watch.is_paused)
    }

    /// Ends the pauses, and returns the requests that have waited.
    pub(super) fn resume(&mut self) -> Vec<Bytes> {
        let is_paused = |of_type: &&'static str| self.watches[of_type].is_paused;
        let paused: Vec<_> = TYPES.iter().filter(|of_type| is_paused(of_type)).collect();
        let mut requests = Vec::new();
        for of_type in paused {
            let watch = self.watches.get_mut(of_type).unwrap();
            watch.is_paused = false;
            if std::mem::take(&mut watch.is_pending) {
                requests.extend(self.queue(of_type));
            }
        }
        requests
    }

    pub(super) fn response(&mut self, message: &Bytes) -> Vec<Bytes> {
        let response = Response::parse(message, self.variant).unwrap();
        assert!(self.nonces.insert(response.nonce.clone()), "a nonce that was used before");
        let of_type = *TYPES.iter().find(|of_type| **of_type == response.type_url).unwrap();
        let watch = self.watches.get_mut(of_type).unwrap();
        assert!(watch.is_requested, "a type without a request");
        watch.is_paused |= self.random.u32(..6) == 0;
        let is_accepted = watch.apply(of_type, self.variant, &response);
        let error = (!is_accepted).then(|| {
            let mut error = BytesMut::new();
            put_bytes(&mut error, 2, format!("rejected {}", response.nonce).as_bytes());
            error.freeze()
        });
        match self.variant {
            Variant::Sotw => {
                let names = response.resources.into_iter().map(|resource| resource.name).collect();
                watch.processed.push(Processed { is_accepted, names });
                watch.nonce = response.nonce;
                // An accepted response does not remove an older error.
                watch.error = error.or(watch.error.take());
            }
            Variant::Delta => watch.verdicts.push_back((response.nonce, error)),
        }
        let mut requests = self.queue(of_type);
        if of_type == CLUSTER {
            requests.extend(self.follow_clusters());
        }
        requests
    }

    /// Returns the requests of a type, unless it is paused.
    fn queue(&mut self, of_type: &'static str) -> Vec<Bytes> {
        let variant = self.variant;
        let watch = self.watches.get_mut(of_type).unwrap();
        if watch.is_paused {
            watch.is_pending = true;
            return Vec::new();
        }
        match variant {
            Variant::Sotw => vec![watch.sotw_request(of_type)],
            Variant::Delta => watch.delta_requests(of_type),
        }
    }

    /// Subscribes to the endpoints of the clusters.
    fn follow_clusters(&mut self) -> Vec<Bytes> {
        let names: BTreeSet<String> = self.watches[CLUSTER].resources.keys().cloned().collect();
        let watch = self.watches.get_mut(EDS).unwrap();
        if names == watch.names {
            return Vec::new();
        }
        for name in names.difference(&watch.names) {
            watch.removed.remove(name);
            watch.added.insert(name.clone());
        }
        for name in watch.names.difference(&names) {
            watch.added.remove(name);
            watch.removed.insert(name.clone());
        }
        watch.names = names;
        watch.resources.retain(|name, _| watch.names.contains(name));
        watch.accepted.retain(|name, _| watch.names.contains(name));
        watch.versions.retain(|name, _| watch.names.contains(name));
        self.queue(EDS)
    }
}

impl Watch {
    /// Applies a response as far as Envoy does, and returns whether Envoy accepts it. Of a rejected one,
    /// Envoy applies the valid clusters and listeners, and the endpoints before the first invalid ones. New
    /// resources of a rejected incremental response are left out: Envoy does not name them on its next
    /// stream, so no control plane could remove them.
    fn apply(&mut self, of_type: &str, variant: Variant, response: &Response) -> bool {
        let is_valid = |content: &u64| *content < REJECTED;
        let mut contents = Vec::new();
        for resource in &response.resources {
            let content: u64 = content_of(&resource.any).parse().unwrap();
            if is_complete(of_type) || self.names.contains(&resource.name) {
                contents.push((resource.name.clone(), content, resource.version.clone()));
            }
        }
        let is_accepted = contents.iter().all(|(_, content, _)| is_valid(content));
        let is_whole_set = variant == Variant::Sotw && is_complete(of_type);
        let named: BTreeSet<&String> = contents.iter().map(|(name, ..)| name).collect();
        let is_removed = |name: &String| {
            is_whole_set && !named.contains(name) || response.removed.iter().any(|removed| removed == name)
        };
        self.resources.retain(|name, _| !is_removed(name));
        if !is_accepted {
            self.rejected.extend(named.iter().copied().chain(&response.removed).cloned());
        } else {
            self.rejected.retain(|name| !is_removed(name) && !named.contains(name));
            self.accepted.retain(|name, _| !is_removed(name));
            self.versions.retain(|name, _| !is_removed(name));
            self.version.clone_from(&response.version);
            let has_all = self.accepted.keys().chain(&self.names).all(|name| named.contains(name));
            self.is_unreported &= !is_whole_set && !has_all;
        }
        for (name, content, version) in &contents {
            let is_known = variant == Variant::Sotw || is_accepted || self.versions.contains_key(name);
            if is_valid(content) && is_known {
                self.resources.insert(name.clone(), *content);
            } else if !is_valid(content) && !is_complete(of_type) {
                break;
            }
            if is_accepted {
                self.accepted.insert(name.clone(), *content);
                self.versions.insert(name.clone(), version.clone());
            }
        }
        is_accepted
    }

    fn sotw_request(&mut self, of_type: &str) -> Bytes {
        self.is_requested = true;
        let processed = std::mem::take(&mut self.processed);
        let last = processed.iter().rposition(|processed| processed.is_accepted);
        if let (Some(_), Some(last), false) = (&self.error, last, is_complete(of_type)) {
            // Which of the responses before it Envoy has accepted, the request does not say.
            for name in processed.iter().take(last).flat_map(|processed| &processed.names) {
                if !processed[last].names.contains(name) {
                    self.accepted.remove(name);
                }
            }
        }
        let request = Request {
            type_url: of_type.to_owned(),
            node: Some(Bytes::from_static(b"\x0a\x01n")),
            version: self.version.clone(),
            nonce: self.nonce.clone(),
            error: self.error.take(),
            subscription: Request::subscription_to(self.names.iter().map(String::as_str)),
            ..Request::default()
        };
        request.encode(Variant::Sotw)
    }

    fn delta_requests(&mut self, of_type: &str) -> Vec<Bytes> {
        let mut requests = Vec::new();
        let mut request = Request { type_url: of_type.to_owned(), ..Request::default() };
        if !self.is_requested {
            self.is_requested = true;
            self.added.clear();
            self.removed.clear();
            request.node = Some(Bytes::from_static(b"\x0a\x01n"));
            request.subscription = Request::subscription_to(self.names.iter().map(String::as_str));
            request.initial_versions = self.versions.clone().into_iter().collect();
            requests.push(request.encode(Variant::Delta));
        }
        let mut changes = BytesMut::new();
        for (number, names) in [(3, &mut self.added), (4, &mut self.removed)] {
            std::mem::take(names).iter().for_each(|name| put_bytes(&mut changes, number, name.as_bytes()));
        }
        let mut changes = changes.freeze();
        while !changes.is_empty() || !self.verdicts.is_empty() {
            // The changes are part of the first verdict.
            let (nonce, error) = self.verdicts.pop_front().unwrap_or_default();
            let subscription = std::mem::take(&mut changes);
            let request =
                Request { type_url: of_type.to_owned(), nonce, error, subscription, ..Request::default() };
            requests.push(request.encode(Variant::Delta));
        }
        requests
    }
}
