//! Applies requests to a subscription.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{MISSING, RequestResult, Subscription};
use crate::message::{ResourceSubscription, TypeUrl, Version};
use crate::stream::version_counts;
use crate::wire::{MESSAGE_LIMIT, NAMES_LIMIT, UNKNOWN_NAMES_LIMIT};

/// Name that subscribes to all resources.
const WILDCARD: &str = "*";

/// Relation of a request to the previous responses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// The first request of its type.
    First,
    /// Acknowledges or rejects the response in flight.
    Acknowledgement,
    /// Has the nonce of the last response, which was acknowledged or rejected before.
    Repeated,
    /// Has no nonce, so it only changes the subscription.
    SubscriptionChange,
    /// Has the nonce of an older response.
    Stale,
}

impl Subscription {
    /// Applies a request. If `startup_grace`, the versions that the peer has from before are taken
    /// into account. `exists` returns whether there is a resource with this name.
    pub(in crate::stream) fn request(
        &mut self,
        subscription: ResourceSubscription,
        nonce: &str,
        error: Option<String>,
        startup_grace: bool,
        exists: impl Fn(&str) -> bool,
    ) -> RequestResult {
        let reply = self.reply(nonce);
        let mut outcome = RequestResult::Taken;
        if reply == Reply::Acknowledgement {
            match &error {
                None => {
                    self.acked = self.in_flight.take();
                    self.kept_endpoints.accepted();
                    self.nack = None;
                }
                Some(text) => {
                    self.in_flight = None;
                    self.kept_endpoints.rejected();
                    let is_new = self.nack.as_ref() != Some(text);
                    outcome = RequestResult::Nacked { text: text.clone(), is_new };
                    self.nack.clone_from(&error);
                }
            }
        }
        let names_more = match &subscription {
            ResourceSubscription::Sotw { names, .. } => {
                names.iter().any(|name| !self.names.contains(name.as_str()) && name != WILDCARD)
            }
            ResourceSubscription::Delta { subscribe, .. } => !subscribe.is_empty(),
        };
        match subscription {
            ResourceSubscription::Sotw { .. } if reply == Reply::Stale => {}
            ResourceSubscription::Sotw { version, names } => {
                self.sotw(&version, names, reply, error.is_some(), startup_grace)
            }
            ResourceSubscription::Delta { subscribe, unsubscribe, initial } => {
                self.delta(subscribe, &unsubscribe, initial, reply, startup_grace);
            }
        }
        if names_more && self.has_too_many_names() {
            return RequestResult::TooMany;
        }
        if names_more && self.has_too_many_unknown_names(exists) {
            return RequestResult::TooManyUnknown;
        }
        outcome
    }

    fn has_too_many_unknown_names(&self, exists: impl Fn(&str) -> bool) -> bool {
        self.names.len() > UNKNOWN_NAMES_LIMIT
            && self.names.iter().filter(|name| !exists(name)).count() > UNKNOWN_NAMES_LIMIT
    }

    /// Returns true if the subscription has more names than one SotW message could contain.
    fn has_too_many_names(&self) -> bool {
        let bytes: usize = self.names.iter().map(|name| name.len()).sum();
        self.names.len() > NAMES_LIMIT || bytes > MESSAGE_LIMIT
    }

    fn reply(&mut self, nonce: &str) -> Reply {
        if !self.requested {
            self.requested = true;
            return Reply::First;
        }
        match nonce {
            "" => Reply::SubscriptionChange,
            nonce if nonce != self.nonce => Reply::Stale,
            _ if self.in_flight.is_some() => Reply::Acknowledgement,
            _ => Reply::Repeated,
        }
    }

    fn sotw(&mut self, version: &str, names: Vec<String>, reply: Reply, refuses: bool, startup_grace: bool) {
        let is_wildcard = self.type_url.has_full_responses()
            && names.is_empty()
            && (reply == Reply::First || self.wildcard && self.names.is_empty());
        let wildcard = is_wildcard || names.iter().any(|name| name == WILDCARD);
        let names: BTreeSet<Arc<str>> =
            names.into_iter().filter(|name| name != WILDCARD).map(Arc::from).collect();
        let is_same = names == self.names && wildcard == self.wildcard;
        self.wildcard = wildcard;
        self.names = names;
        let Self { sent_versions, names, endpoints_before_restart, kept_endpoints, .. } = self;
        if !wildcard {
            sent_versions.retain(|name, _| names.contains(name));
            endpoints_before_restart.retain(|name, _| names.contains(name));
            kept_endpoints.retain(|name| names.contains(name));
        }
        let is_assignments = self.type_url == TypeUrl::Endpoint;
        if reply == Reply::First {
            self.response_required = self.subscribes();
            if is_assignments && startup_grace && !version.is_empty() {
                self.endpoints_before_restart = version_counts::decode(version, self.names.iter());
            }
            if !version.is_empty() {
                self.acked = Some(workload_health::text::printable(version));
            }
        }
        // The same names again: Envoy waits for a response after clusters were pushed.
        let again = matches!(reply, Reply::Repeated | Reply::SubscriptionChange) && is_same && !refuses;
        let warms = is_assignments && reply == Reply::Acknowledgement && !refuses && !self.warming.is_empty();
        if is_assignments && reply != Reply::SubscriptionChange {
            self.warming.clear();
        }
        if again || warms {
            self.sent_versions.clear();
        }
        self.response_required |=
            again && self.subscribes() || !is_same && self.type_url.has_full_responses();
        if reply == Reply::First || !is_same || again || warms {
            self.pending.add_all();
        }
        // A request for the same names does not bypass the minimum interval.
        self.bypass_interval |= reply == Reply::First || !is_same || warms;
    }

    fn delta(
        &mut self,
        subscribe: Vec<String>,
        unsubscribe: &[String],
        initial: BTreeMap<String, String>,
        reply: Reply,
        startup_grace: bool,
    ) {
        let is_first = reply == Reply::First;
        let has_wildcard = |names: &[String]| names.iter().any(|name| name == WILDCARD);
        if is_first || has_wildcard(&subscribe) || has_wildcard(unsubscribe) {
            self.pending.add_all();
        }
        if is_first && subscribe.is_empty() && self.type_url.has_full_responses() {
            self.wildcard = true;
        }
        self.bypass_interval |= !subscribe.is_empty() || is_first;
        for name in subscribe {
            if name == WILDCARD {
                self.wildcard = true;
            } else {
                // A client that subscribes to a name again expects a response.
                self.sent_versions.remove(name.as_str());
                let name = Arc::from(name);
                self.pending.add(Arc::clone(&name));
                self.names.insert(name);
            }
        }
        for name in unsubscribe {
            if name == WILDCARD {
                self.wildcard = false;
                let names = &self.names;
                self.sent_versions.retain(|name, _| names.contains(name));
            } else {
                self.names.remove(name.as_str());
                self.sent_versions.remove(name.as_str());
                self.endpoints_before_restart.remove(name.as_str());
                self.pending.add(name.as_str().into());
            }
        }
        if is_first {
            self.response_required = self.subscribes();
            for (name, version) in initial {
                self.holds(name.into(), &version, startup_grace);
            }
            self.send_warming_again();
        }
    }

    fn holds(&mut self, name: Arc<str>, version: &str, startup_grace: bool) {
        if !self.wildcard && !self.names.contains(&name) {
            return;
        }
        // A version in another format differs from all versions of this server.
        let version = Version::parse(version).unwrap_or(Version { hash: !MISSING.hash, endpoints: None });
        if let Some(endpoints) = version.endpoints.filter(|_| startup_grace) {
            self.endpoints_before_restart.insert(name.clone(), endpoints);
        }
        self.sent_versions.insert(name, version);
    }
}
