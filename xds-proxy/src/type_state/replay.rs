//! What a new upstream stream receives for a type, and which of its responses Envoy need not receive.

use std::time::Duration;

use super::{Content, Delivered, ServerNonce, TypeState, WILDCARD};
use crate::last_good::GoodType;
use crate::wire::{Request, Resource, Variant, is_complete};

impl TypeState {
    /// Returns the first request of this type for an upstream stream: the subscription and the
    /// versions that Envoy holds. `None` if Envoy subscribes to nothing.
    pub(crate) fn first_request(&mut self, stream: u64) -> Option<Request> {
        if !self.is_subscribed() {
            return None;
        }
        self.awaits_replay = true;
        self.requested_on = stream;
        let type_url = self.type_url.clone();
        let request = match self.variant {
            Variant::Sotw => Request {
                type_url,
                // Envoy may still accept a response that it has not acknowledged.
                version: if self.in_flight.is_empty() { self.version.clone() } else { String::new() },
                subscription: self.subscription.clone(),
                ..Request::default()
            },
            Variant::Delta => {
                let has_names = self.names.names().any(|name| name != WILDCARD);
                let wildcard =
                    (self.is_wildcard && has_names && !self.names.contains(WILDCARD)).then_some(WILDCARD);
                let names = self.names.names().chain(wildcard);
                let mut versions = self.held.versions().clone();
                versions.extend(self.in_flight.iter().flat_map(unknown_versions));
                Request {
                    type_url,
                    subscription: Request::subscription_to(names),
                    initial_versions: versions.into_iter().collect(),
                    ..Request::default()
                }
            }
        };
        let has_version = |(_, version): &(String, String)| !version.is_empty();
        self.has_sent_version =
            !request.version.is_empty() || request.initial_versions.iter().any(has_version);
        Some(request)
    }

    /// Returns true if this upstream stream has received a request of this type.
    pub(crate) fn is_requested_on(&self, stream: u64) -> bool {
        self.requested_on == stream
    }

    /// Returns true if a response of the control plane repeats what Envoy holds, after a reconnect.
    pub(crate) fn is_repetition(&self, content: &Content, good: Option<&GoodType>) -> bool {
        if !self.awaits_replay || self.wants_answer || content.is_cut || !self.in_flight.is_empty() {
            return false;
        }
        match self.variant {
            Variant::Sotw => {
                self.is_synced && good.is_some_and(|good| content.equals(good, is_complete(&self.type_url)))
            }
            Variant::Delta => {
                content.removed.is_empty() && content.resources.iter().all(|new| self.holds(new, good))
            }
        }
    }

    /// Returns true if Envoy holds a resource of the incremental variant. istiod sends no versions, so
    /// their contents are compared.
    fn holds(&self, new: &Resource, good: Option<&GoodType>) -> bool {
        self.held.get(&new.name).is_some_and(|version| {
            version == new.version
                && (!version.is_empty()
                    || self.is_synced
                        && self.delivered.contains(&new.name)
                        && good
                            .and_then(|good| good.resources().get(&new.name))
                            .is_some_and(|stored| stored.any == new.any))
        })
    }

    /// Records a response that Envoy need not receive. Returns the request that acknowledges it.
    pub(crate) fn skip(&mut self, server: ServerNonce, content: &Content) -> Request {
        self.confirm();
        let request =
            Request { type_url: self.type_url.clone(), nonce: server.nonce.clone(), ..Request::default() };
        if let Some((_, known)) = &mut self.last {
            *known = Some(server);
        }
        match self.variant {
            Variant::Sotw => Request {
                version: content.version.clone(),
                subscription: self.subscription.clone(),
                ..request
            },
            Variant::Delta => request,
        }
    }

    pub(super) fn confirm(&mut self) {
        self.awaits_replay = false;
        self.is_answered = true;
        self.from_cache = None;
    }

    /// Returns true if Envoy uses resources from the cache and the control plane has received their
    /// version on this upstream stream, which was opened at `opened`.
    pub(crate) fn awaits_confirmation(&self, opened: Duration) -> bool {
        self.has_sent_version && self.from_cache.is_some_and(|(_, at)| at < opened)
    }
}

/// Returns the names in a response, without versions. A control plane that receives them sends the
/// resources again, or removes them.
pub(super) fn unknown_versions(delivered: &Delivered) -> Vec<(String, String)> {
    let Content { resources, removed, .. } = &delivered.content;
    let named = resources.iter().map(|resource| &resource.name).chain(removed);
    named.filter(|name| !name.is_empty()).map(|name| (name.clone(), String::new())).collect()
}
