//! What a new upstream stream receives for a type, and which of its responses Envoy need not receive.

use std::collections::BTreeSet;

use xds::{Request, Variant};

use super::{Content, ServerNonce, ServerVersion, TypeState, WILDCARD};
use crate::last_good::GoodType;
use crate::names::Mark;

/// The version of each resource that Envoy holds, for a new upstream stream. A control plane that has
/// never sent this version sends the resource again, or removes it.
const UNKNOWN_VERSION: &str = "app-health:unknown";

impl TypeState {
    /// Returns the first request of this type for an upstream stream: the subscription, and the names that
    /// Envoy holds or may get from the last good configuration, of which the server then removes those
    /// that it does not have. It has no versions, because the server may have restarted, or be another
    /// one: it would mistake them for its own, and not send what it has under them. `None` if Envoy
    /// subscribes to nothing.
    pub(crate) fn first_request(&mut self, stream: u64, good: Option<&GoodType>) -> Option<Request> {
        if !self.is_subscribed() {
            return None;
        }
        self.awaits_replay = true;
        self.requested_on = stream;
        let type_url = self.type_url.clone();
        let request = match self.variant {
            Variant::Sotw => {
                Request { type_url, subscription: self.subscription.clone(), ..Request::default() }
            }
            Variant::Delta => {
                let has_names = self.names.with(Mark::Subscribed).any(|name| name != WILDCARD);
                let wildcard = (self.is_wildcard && has_names && !self.names.has(Mark::Subscribed, WILDCARD))
                    .then_some(WILDCARD);
                let names = self.names.with(Mark::Subscribed).chain(wildcard);
                // Envoy may still accept a response that it has not acknowledged.
                let in_flight = self.in_flight.iter().flat_map(|delivered| delivered.content.names());
                let in_flight = in_flight.map(String::as_str);
                let stored = good.into_iter().flat_map(GoodType::names);
                let stored = stored.filter(|name| self.subscribes_to(name));
                let held: BTreeSet<&str> =
                    self.names.with(Mark::Held).chain(in_flight).chain(stored).collect();
                let unknown = |name: &str| (name.to_owned(), UNKNOWN_VERSION.to_owned());
                Request {
                    type_url,
                    subscription: Request::subscription_to(names),
                    initial_versions: held.into_iter().map(unknown).collect(),
                    ..Request::default()
                }
            }
        };
        Some(request)
    }

    /// Returns true if a response of the control plane repeats what Envoy holds, after a reconnect.
    pub(crate) fn is_repetition(&self, content: &Content, good: Option<&GoodType>) -> bool {
        if !self.awaits_replay || self.wants_answer || content.is_cut || !self.in_flight.is_empty() {
            return false;
        }
        // Contents are compared: a version may be that of another server, and istiod sends none.
        let is_synced = if self.receives_whole_sets() {
            self.is_synced
        } else {
            content.removed.is_empty()
                && content.resources.iter().all(|new| self.names.has(Mark::Synced, &new.name))
        };
        is_synced && good.is_some_and(|good| self.equals(content, good))
    }

    /// Records a response that Envoy need not receive. Returns the request that acknowledges it.
    pub(crate) fn skip(&mut self, server: ServerNonce, content: &Content) -> Request {
        self.confirm();
        let request =
            Request { type_url: self.type_url.clone(), nonce: server.nonce.clone(), ..Request::default() };
        let version = content.version.clone();
        self.accepted = Some(ServerVersion { stream: server.stream, version });
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

    /// Records a response that Envoy must not receive. Returns the request that rejects it.
    pub(crate) fn refuse(&mut self, server: ServerNonce, text: &str) -> Request {
        /// Status code of `google.rpc.Code`.
        const INTERNAL: u64 = 13;
        self.awaits_replay = false;
        let request = Request {
            type_url: self.type_url.clone(),
            nonce: server.nonce.clone(),
            error: Some(Request::status(INTERNAL, text)),
            ..Request::default()
        };
        let version = self.version_of(server.stream);
        if let Some((_, known)) = &mut self.last {
            *known = Some(server);
        }
        match self.variant {
            Variant::Sotw => Request { version, subscription: self.subscription.clone(), ..request },
            Variant::Delta => request,
        }
    }

    pub(super) fn confirm(&mut self) {
        self.awaits_replay = false;
        self.is_answered = true;
        self.from_cache = None;
    }
}
