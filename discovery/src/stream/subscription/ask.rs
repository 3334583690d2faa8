//! Applies requests to a subscription.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{MISSING, Outcome, Subscription};
use crate::message::{Ask, TypeUrl, Version};
use crate::stream::held;
use crate::xds::{MESSAGE_LIMIT, NAMES_LIMIT};

/// Name that subscribes to all resources.
const EVERYTHING: &str = "*";

/// Relation of a request to the previous responses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// The first request of its type.
    First,
    /// Acknowledges or rejects the response in flight.
    Current,
    /// Has the nonce of the last response, which was acknowledged or rejected before.
    Again,
    /// Has no nonce, so it only changes the subscription.
    Unbidden,
    /// Has the nonce of an older response.
    Stale,
}

impl Subscription {
    /// Applies a request. If `settling`, the versions that the peer has from before are taken into
    /// account.
    pub(in crate::stream) fn request(
        &mut self,
        ask: Ask,
        nonce: &str,
        error: Option<String>,
        settling: bool,
    ) -> Outcome {
        let reply = self.reply(nonce);
        let mut outcome = Outcome::Taken;
        if reply == Reply::Current {
            match &error {
                None => {
                    self.acked = self.in_flight.take();
                    self.nack = None;
                }
                Some(text) => {
                    self.in_flight = None;
                    let is_new = self.nack.as_ref() != Some(text);
                    outcome = Outcome::Nacked { text: text.clone(), is_new };
                    self.nack.clone_from(&error);
                }
            }
        }
        let names_more = match &ask {
            Ask::Sotw { names, .. } => !names.is_empty(),
            Ask::Delta { subscribe, .. } => !subscribe.is_empty(),
        };
        match ask {
            Ask::Sotw { .. } if reply == Reply::Stale => {}
            Ask::Sotw { version, names } => self.sotw(&version, names, reply, error.is_some(), settling),
            Ask::Delta { subscribe, unsubscribe, initial } => {
                self.delta(subscribe, &unsubscribe, initial, reply, settling);
            }
        }
        if names_more && self.has_too_many_names() { Outcome::TooMany } else { outcome }
    }

    /// Returns true if the subscription has more names than one SotW message could contain.
    fn has_too_many_names(&self) -> bool {
        let bytes: usize = self.names.iter().map(|name| name.len()).sum();
        self.names.len() > NAMES_LIMIT || bytes > MESSAGE_LIMIT
    }

    fn reply(&mut self, nonce: &str) -> Reply {
        if !self.asked {
            self.asked = true;
            return Reply::First;
        }
        match nonce {
            "" => Reply::Unbidden,
            nonce if nonce != self.nonce => Reply::Stale,
            _ if self.in_flight.is_some() => Reply::Current,
            _ => Reply::Again,
        }
    }

    fn sotw(&mut self, version: &str, names: Vec<String>, reply: Reply, refuses: bool, settling: bool) {
        let is_wildcard = self.type_url == TypeUrl::Cluster
            && names.is_empty()
            && (reply == Reply::First || self.everything && self.names.is_empty());
        let everything = is_wildcard || names.iter().any(|name| name == EVERYTHING);
        let names: BTreeSet<Arc<str>> =
            names.into_iter().filter(|name| name != EVERYTHING).map(Arc::from).collect();
        let is_same = names == self.names && everything == self.everything;
        self.everything = everything;
        self.names = names;
        let Self { has, names, held, .. } = self;
        if !everything {
            has.retain(|name, _| names.contains(name));
            held.retain(|name, _| names.contains(name));
        }
        let is_assignments = self.type_url == TypeUrl::Endpoint;
        if reply == Reply::First {
            self.must_answer = self.subscribes();
            if is_assignments && settling && !version.is_empty() {
                self.held = held::read(version, self.names.iter());
            }
            if !version.is_empty() {
                self.acked = Some(workload_health::health_report::printable(version));
            }
        }
        // The same names again: Envoy waits for a response after clusters were pushed.
        let again = matches!(reply, Reply::Again | Reply::Unbidden) && is_same && !refuses;
        let warms = is_assignments && reply == Reply::Current && !refuses && !self.warming.is_empty();
        if is_assignments && reply != Reply::Unbidden {
            self.warming.clear();
        }
        if again || warms {
            self.has.clear();
        }
        self.must_answer |= again && self.subscribes() || !is_same && !is_assignments;
        // A request for the same names does not bypass the minimum interval.
        self.solicited |= reply == Reply::First || !is_same || warms;
    }

    fn delta(
        &mut self,
        subscribe: Vec<String>,
        unsubscribe: &[String],
        initial: BTreeMap<String, String>,
        reply: Reply,
        settling: bool,
    ) {
        let is_first = reply == Reply::First;
        if is_first && subscribe.is_empty() && self.type_url == TypeUrl::Cluster {
            self.everything = true;
        }
        self.solicited |= !subscribe.is_empty() || is_first;
        for name in subscribe {
            if name == EVERYTHING {
                self.everything = true;
            } else {
                // A client that subscribes to a name again expects a response.
                self.has.remove(name.as_str());
                self.names.insert(name.into());
            }
        }
        for name in unsubscribe {
            if name == EVERYTHING {
                self.everything = false;
                let names = &self.names;
                self.has.retain(|name, _| names.contains(name));
            } else {
                self.names.remove(name.as_str());
                self.has.remove(name.as_str());
                self.held.remove(name.as_str());
            }
        }
        if is_first {
            self.must_answer = self.subscribes();
            for (name, version) in initial {
                self.holds(name.into(), &version, settling);
            }
            self.send_warming_again();
        }
    }

    fn holds(&mut self, name: Arc<str>, version: &str, settling: bool) {
        if !self.everything && !self.names.contains(&name) {
            return;
        }
        // A version in another format differs from all versions of this server.
        let version = Version::parse(version).unwrap_or(Version { hash: !MISSING.hash, endpoints: None });
        if let Some(endpoints) = version.endpoints.filter(|_| settling) {
            self.held.insert(name.clone(), endpoints);
        }
        self.has.insert(name, version);
    }
}
