//! What the server knows of one stream, and what it sends.

use std::collections::{BTreeMap, BTreeSet};

use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource,
};
use envoy_types::pb::google::protobuf::Any;

use super::{Collection, Collections, Seen};
use crate::vm::xds_resources::{CLUSTER, LISTENER};

/// A response of either variant.
pub(super) struct Answer {
    type_url: String,
    version: String,
    nonce: String,
    resources: Vec<(String, Any)>,
    removed: Vec<String>,
}

impl Answer {
    pub(super) fn into_sotw(self) -> DiscoveryResponse {
        DiscoveryResponse {
            type_url: self.type_url,
            version_info: self.version,
            nonce: self.nonce,
            resources: self.resources.into_iter().map(|(_, any)| any).collect(),
            ..DiscoveryResponse::default()
        }
    }

    pub(super) fn into_delta(self) -> DeltaDiscoveryResponse {
        let Self { type_url, version, nonce, resources, removed: removed_resources } = self;
        let resource = |(name, any)| Resource {
            name,
            version: version.clone(),
            resource: Some(any),
            ..Resource::default()
        };
        let resources = resources.into_iter().map(resource).collect();
        DeltaDiscoveryResponse { type_url, nonce, resources, removed_resources, ..Default::default() }
    }
}

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
    is_delta: bool,
    nonces: usize,
    subscriptions: BTreeMap<String, Subscription>,
}

impl OneStream {
    pub(super) fn new(number: usize, is_delta: bool) -> Self {
        Self { number, is_delta, nonces: 0, subscriptions: BTreeMap::new() }
    }

    /// Returns the response to a request, if it needs one.
    pub(super) fn request(&mut self, seen: &Seen, collections: &Collections) -> Option<Answer> {
        let collection = collections.get(&seen.type_url)?;
        let is_first = !self.subscriptions.contains_key(&seen.type_url);
        let subscription = self.subscriptions.entry(seen.type_url.clone()).or_default();
        let before = subscription.names.clone();
        if self.is_delta {
            subscription.has.extend(seen.initial.clone());
            for name in &seen.unsubscribe {
                subscription.names.remove(name);
            }
            for name in seen.unsubscribe.iter().chain(seen.subscribe.iter().filter(|_| !is_first)) {
                subscription.has.remove(name);
            }
            subscription.names.extend(seen.subscribe.iter().cloned());
        } else {
            subscription.names = seen.subscribe.iter().cloned().collect();
        }
        let is_changed = before != subscription.names;
        if is_first && seen.version == collection.version {
            subscription.sent.clone_from(&seen.version);
            return None;
        }
        (is_first || is_changed).then(|| self.answer(&seen.type_url, collection))
    }

    /// Returns the responses after a change of the resources.
    pub(super) fn changed(&mut self, collections: &Collections) -> Vec<Answer> {
        let is_changed = |(type_url, collection): &(&String, &Collection)| {
            self.subscriptions.get(*type_url).is_some_and(|known| known.sent != collection.version)
        };
        let changed: Vec<_> = collections.iter().filter(is_changed).collect();
        changed.into_iter().map(|(type_url, collection)| self.answer(type_url, collection)).collect()
    }

    fn answer(&mut self, type_url: &str, collection: &Collection) -> Answer {
        self.nonces += 1;
        let subscription = self.subscriptions.entry(type_url.to_owned()).or_default();
        let is_complete = [CLUSTER, LISTENER].contains(&type_url);
        let is_current =
            |name: &String| self.is_delta && subscription.has.get(name) == Some(&collection.version);
        let wanted = collection.resources.iter();
        let wanted = wanted.filter(|(name, _)| is_complete || subscription.names.contains(*name));
        let resources: Vec<(String, Any)> = wanted
            .filter(|(name, _)| !is_current(name))
            .map(|(name, any)| (name.clone(), any.clone()))
            .collect();
        let is_gone = |name: &&String| !collection.resources.contains_key(*name);
        let removed: Vec<String> = subscription.has.keys().filter(is_gone).cloned().collect();
        for (name, _) in &resources {
            subscription.has.insert(name.clone(), collection.version.clone());
        }
        for name in &removed {
            subscription.has.remove(name);
        }
        subscription.sent.clone_from(&collection.version);
        Answer {
            type_url: type_url.to_owned(),
            version: collection.version.clone(),
            nonce: format!("{}-{}", self.number, self.nonces),
            resources,
            removed,
        }
    }
}

pub(super) fn from_sotw(message: DiscoveryRequest) -> Seen {
    Seen {
        type_url: message.type_url,
        version: message.version_info,
        nonce: message.response_nonce,
        error: message.error_detail.map(|status| status.message),
        subscribe: message.resource_names,
        ..Seen::default()
    }
}

pub(super) fn from_delta(message: DeltaDiscoveryRequest) -> Seen {
    Seen {
        type_url: message.type_url,
        nonce: message.response_nonce,
        error: message.error_detail.map(|status| status.message),
        initial: message.initial_resource_versions.into_iter().collect(),
        subscribe: message.resource_names_subscribe,
        unsubscribe: message.resource_names_unsubscribe,
        ..Seen::default()
    }
}
