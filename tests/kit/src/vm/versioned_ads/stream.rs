//! What the server knows of one stream, and what it sends.

use std::collections::{BTreeMap, BTreeSet};

use hyper::body::Bytes;
use xds::{Request, ResourceRef, ResponseHead, Variant, type_url};

use super::{Collection, Collections};

/// The subscription to one type.
#[derive(Default)]
struct Subscription {
    names: BTreeSet<String>,
    /// The version that was sent last, in state of the world.
    sent: String,
    /// Versions of the resources that the client has, in the incremental variant.
    has: BTreeMap<String, String>,
}

pub(super) struct OneStream {
    number: usize,
    variant: Variant,
    nonces: usize,
    subscriptions: BTreeMap<String, Subscription>,
}

impl OneStream {
    pub(super) fn new(number: usize, variant: Variant) -> Self {
        Self { number, variant, nonces: 0, subscriptions: BTreeMap::new() }
    }

    /// Returns the response to a request, if it needs one.
    pub(super) fn request(&mut self, request: &Request, collections: &Collections) -> Option<Bytes> {
        let collection = collections.get(&request.type_url)?;
        let is_first = !self.subscriptions.contains_key(&request.type_url);
        let subscription = self.subscriptions.entry(request.type_url.clone()).or_default();
        let before = subscription.names.clone();
        if self.variant == Variant::Delta {
            subscription.has.extend(request.initial_versions.iter().cloned());
            for name in &request.unsubscribe {
                subscription.names.remove(name);
            }
            for name in request.unsubscribe.iter().chain(request.subscribe.iter().filter(|_| !is_first)) {
                subscription.has.remove(name);
            }
            subscription.names.extend(request.subscribe.iter().cloned());
        } else {
            subscription.names = request.subscribe.iter().cloned().collect();
        }
        let is_changed = before != subscription.names;
        if is_first && request.version == collection.version {
            subscription.sent.clone_from(&request.version);
            return None;
        }
        (is_first || is_changed).then(|| self.response(&request.type_url, collection))
    }

    /// Returns the responses after a change of the resources.
    pub(super) fn changed(&mut self, collections: &Collections) -> Vec<Bytes> {
        let is_changed = |(type_url, collection): &(&String, &Collection)| {
            self.subscriptions.get(*type_url).is_some_and(|known| known.sent != collection.version)
        };
        let changed: Vec<_> = collections.iter().filter(is_changed).collect();
        changed.into_iter().map(|(type_url, collection)| self.response(type_url, collection)).collect()
    }

    fn response(&mut self, type_url: &str, collection: &Collection) -> Bytes {
        self.nonces += 1;
        let is_delta = self.variant == Variant::Delta;
        let subscription = self.subscriptions.entry(type_url.to_owned()).or_default();
        let is_current = |name: &String| is_delta && subscription.has.get(name) == Some(&collection.version);
        let wanted = collection.resources.iter();
        let wanted =
            wanted.filter(|(name, _)| type_url::is_complete(type_url) || subscription.names.contains(*name));
        let resources: Vec<_> = wanted.filter(|(name, _)| !is_current(name)).collect();
        let is_gone = |name: &&String| !collection.resources.contains_key(*name);
        let removed: Vec<String> = subscription.has.keys().filter(is_gone).cloned().collect();
        for (name, _) in &resources {
            subscription.has.insert((*name).clone(), collection.version.clone());
        }
        for name in &removed {
            subscription.has.remove(name);
        }
        let version = &*collection.version;
        version.clone_into(&mut subscription.sent);
        let head = ResponseHead {
            type_url,
            // An incremental response has the versions of its resources.
            version: if is_delta { "" } else { version },
            nonce: &format!("{}-{}", self.number, self.nonces),
        };
        let resources = resources.into_iter().map(|(name, any)| ResourceRef { name, version, any });
        head.encode(self.variant, resources, removed.iter().map(String::as_str))
    }
}
