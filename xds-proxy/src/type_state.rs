//! The state of one resource type on the current stream of Envoy: what Envoy subscribes to, which
//! responses it has not acknowledged, and which request each upstream stream has received.

mod content;
mod delivery;
mod replay;
mod verdict;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use crate::last_good::GoodType;
use crate::names::{Mark, Names};
pub(crate) use content::{Content, from_last_good};
use verdict::Settled;
pub(crate) use verdict::Verdict;
use xds::type_url::is_complete;
use xds::{ITEM_LIMIT, Request, Variant};

/// How long Envoy waits for a control plane that neither answers nor refuses before it receives the
/// last good configuration.
const CACHE_DELAY: Duration = Duration::from_millis(300);
const WILDCARD: &str = "*";

/// The nonce of a response, and the number of the upstream stream that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerNonce {
    pub(crate) stream: u64,
    pub(crate) nonce: String,
}

/// A version of the control plane, and the number of the upstream stream that sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerVersion {
    stream: u64,
    version: String,
}

/// A response that Envoy has received and not acknowledged yet.
#[derive(Debug, Clone)]
pub(crate) struct Delivered {
    /// The nonce that Envoy received.
    pub(crate) ours: u64,
    /// `None` for a response from the last good configuration.
    pub(crate) server: Option<ServerNonce>,
    /// The version that Envoy received.
    pub(crate) version: String,
    pub(crate) content: Content,
    /// Size of the message and of its content in memory, in bytes.
    pub(crate) size: usize,
    pub(crate) at: Duration,
}

/// State of one resource type.
#[derive(Debug)]
pub(crate) struct TypeState {
    variant: Variant,
    type_url: String,
    /// In state of the world: the encoded subscription of the last request.
    subscription: Bytes,
    names: Names,
    /// True if Envoy subscribes to all resources.
    is_wildcard: bool,
    /// `version_info` of Envoy's last request.
    version: String,
    /// Version of the last response that Envoy accepted, and the upstream stream that sent it; `None` if
    /// it came from the last good configuration. A version says nothing to any other stream: another
    /// server, or the same one after a restart, may use it for another content.
    accepted: Option<ServerVersion>,
    pub(crate) in_flight: VecDeque<Delivered>,
    /// The newest nonce that Envoy received, and the server's nonce for it.
    last: Option<(u64, Option<ServerNonce>)>,
    /// The upstream stream that received a request of this type, 0 for none.
    requested_on: u64,
    /// True from the repetition of the subscription after a reconnect to the next response.
    awaits_replay: bool,
    /// True if Envoy waits for a response, even for an unchanged one.
    wants_answer: bool,
    /// True if Envoy holds exactly the last good resources, of a type that is received as whole sets.
    is_synced: bool,
    /// True if Envoy had resources of this type before this stream.
    pub(crate) had_resources: bool,
    /// True once a response of the control plane was delivered on this stream of Envoy.
    is_answered: bool,
    requested_at: Duration,
    /// True once there were too many names to keep. Responses are still passed on.
    is_untracked: bool,
    /// Set while Envoy uses resources of the last good configuration: their age, and since when.
    pub(crate) from_cache: Option<(Duration, Duration)>,
}

impl TypeState {
    pub(crate) fn new(variant: Variant, type_url: String, now: Duration) -> Self {
        Self {
            variant,
            type_url,
            subscription: Bytes::new(),
            names: Names::default(),
            is_wildcard: false,
            version: String::new(),
            accepted: None,
            in_flight: VecDeque::new(),
            last: None,
            requested_on: 0,
            awaits_replay: false,
            wants_answer: true,
            is_synced: false,
            had_resources: false,
            is_answered: false,
            requested_at: now,
            is_untracked: false,
            from_cache: None,
        }
    }

    pub(crate) fn type_url(&self) -> &str {
        &self.type_url
    }

    /// Returns the number of names that Envoy subscribes to.
    pub(crate) fn names(&self) -> usize {
        self.names.with(Mark::Subscribed).count()
    }

    /// Returns true if Envoy wants any resources of this type.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.is_wildcard || self.names.with(Mark::Subscribed).next().is_some()
    }

    pub(crate) fn subscribes_to(&self, name: &str) -> bool {
        self.is_wildcard || self.names.has(Mark::Subscribed, name)
    }

    /// Returns true if each response contains all resources of the type.
    pub(crate) fn receives_whole_sets(&self) -> bool {
        self.variant == Variant::Sotw && is_complete(&self.type_url)
    }

    /// Returns the version that Envoy reports.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the size of the names and versions in memory, in bytes.
    pub(crate) fn names_size(&self) -> usize {
        self.names.size() + self.subscription.len() + self.version.len()
    }

    /// Returns true if there are more names than the proxy keeps, or some were not read.
    pub(crate) fn has_too_many_names(&self) -> bool {
        let is_cut = |delivered: &Delivered| delivered.content.is_cut;
        !self.is_untracked && self.in_flight.back().is_some_and(is_cut) || self.names.len() > ITEM_LIMIT
    }

    /// Forgets what Envoy holds.
    pub(crate) fn untrack(&mut self) {
        self.is_untracked = true;
        self.names.keep_mark(Mark::Subscribed);
    }

    pub(crate) fn is_untracked(&self) -> bool {
        self.is_untracked
    }

    /// Returns true if another upstream stream would have to learn what Envoy holds, which only Envoy
    /// knows.
    pub(crate) fn cannot_be_replayed(&self) -> bool {
        self.is_untracked && self.variant == Variant::Delta && self.is_subscribed()
    }

    /// Processes a request of Envoy. `stream` is the number of the open upstream stream, and `good` the last
    /// good configuration. Returns what the request says, and the requests for the control plane, without a
    /// node.
    pub(crate) fn request(
        &mut self,
        request: Request,
        stream: Option<u64>,
        good: Option<&GoodType>,
    ) -> (Vec<Verdict>, Vec<Request>) {
        let before = stream.map(|stream| self.version_of(stream)).unwrap_or_default();
        let Settled { server, verdicts, rejected } = self.settle(&request);
        let is_changed = self.subscribe(&request);
        self.wants_answer |= verdicts.is_empty();
        let Some(stream) = stream else { return (verdicts, Vec::new()) };
        if self.requested_on != stream {
            return (verdicts, self.first_request(stream, good).into_iter().collect());
        }
        let of_stream = |server: ServerNonce| (server.stream == stream).then_some(server.nonce);
        let nonce = match (self.variant, server.and_then(of_stream)) {
            (_, Some(nonce)) => Some(nonce),
            // A response of another stream must not be acknowledged on this one.
            (Variant::Delta, None) => (!request.subscription.is_empty()).then(String::new),
            (Variant::Sotw, None) => (is_changed || self.wants_answer).then(|| self.newest(stream)).flatten(),
        };
        let is_newest_rejected = rejected.is_none();
        // Envoy has accepted the newest response, and its error is that of an older one.
        let rejection = rejected.and_then(of_stream).map(|nonce| Request {
            version: before,
            initial_versions: Vec::new(),
            node: None,
            nonce,
            ..request.clone()
        });
        let forwarded = nonce.map(|nonce| Request {
            version: self.version_of(stream),
            error: request.error.filter(|_| is_newest_rejected && !nonce.is_empty()),
            initial_versions: Vec::new(),
            node: None,
            nonce,
            ..request
        });
        self.awaits_replay &= forwarded.is_none();
        (verdicts, rejection.into_iter().chain(forwarded).collect())
    }

    /// Returns the version that Envoy has accepted from this upstream stream; empty for none.
    pub(super) fn version_of(&self, stream: u64) -> String {
        let accepted = self.accepted.as_ref().filter(|accepted| accepted.stream == stream);
        accepted.map(|accepted| accepted.version.clone()).unwrap_or_default()
    }

    /// Returns the nonce for a change of the subscription in state of the world: that of the newest
    /// response of the stream, or an empty one before the first response. `None` if Envoy is about to
    /// acknowledge a response, because that request will contain the whole subscription.
    fn newest(&self, stream: u64) -> Option<String> {
        let of_stream = |server: &&ServerNonce| server.stream == stream;
        let in_flight = |delivered: &Delivered| delivered.server.as_ref().filter(of_stream).is_some();
        if self.in_flight.iter().any(in_flight) {
            return None;
        }
        let last = self.last.as_ref().and_then(|(_, server)| server.as_ref()).filter(of_stream);
        Some(last.map(|server| server.nonce.clone()).unwrap_or_default())
    }

    /// Updates the subscription and returns true if it has changed.
    fn subscribe(&mut self, request: &Request) -> bool {
        let is_first = self.last.is_none() && self.requested_on == 0 && !self.is_subscribed();
        match self.variant {
            Variant::Sotw => {
                self.had_resources |= is_first && !request.version.is_empty();
                self.version.clone_from(&request.version);
                let names: HashSet<&str> = request.subscribe.iter().map(String::as_str).collect();
                self.is_wildcard = names.contains(WILDCARD)
                    || names.is_empty() && (is_first || self.is_wildcard || is_complete(&self.type_url));
                let is_changed = self.subscription != request.subscription;
                self.subscription = request.subscription.clone();
                if self.is_wildcard {
                    // Names that are not listed are delivered too.
                    self.names.keep_mark_of(Mark::Subscribed, |name| names.contains(name));
                } else {
                    self.names.retain(|name| names.contains(name));
                }
                names.iter().for_each(|name| self.names.add(Mark::Subscribed, name));
                is_changed
            }
            Variant::Delta => {
                self.is_wildcard |= is_first && request.subscribe.is_empty()
                    || request.subscribe.iter().any(|name| name == WILDCARD);
                for name in &request.subscribe {
                    // The server must send it again, even if it is unchanged.
                    self.names.remove(Mark::Held, name);
                    self.names.remove(Mark::Synced, name);
                    self.names.add(Mark::Subscribed, name);
                }
                for name in &request.unsubscribe {
                    self.names.remove(Mark::Subscribed, name);
                    self.names.remove(Mark::Delivered, name);
                    self.names.remove(Mark::Synced, name);
                    self.is_wildcard &= name != WILDCARD;
                }
                for name in request.unsubscribe.iter().filter(|_| !self.is_wildcard) {
                    self.names.remove(Mark::Held, name);
                }
                self.had_resources |= is_first && !request.initial_versions.is_empty();
                if !self.is_untracked {
                    for (name, _) in &request.initial_versions {
                        self.names.add(Mark::Held, name);
                    }
                }
                !request.subscription.is_empty()
            }
        }
    }

    /// When Envoy receives the last good resources although a control plane may still answer. `None`
    /// once it has answered: then it decides what Envoy gets.
    pub(crate) fn cache_after(&self) -> Option<Duration> {
        (!self.is_answered).then_some(self.requested_at + CACHE_DELAY)
    }

    /// Returns true if Envoy waits for last good resources, or for the empty set of them.
    pub(crate) fn has_missing(&self, good: &GoodType) -> bool {
        let is_first = self.last.is_none() && !self.had_resources;
        if self.is_untracked
            || !self.is_subscribed()
            || self.variant == Variant::Sotw && is_complete(&self.type_url) && !is_first
        {
            return false;
        }
        let is_empty_set = is_first && self.is_wildcard && self.names.with(Mark::Held).next().is_none();
        is_empty_set || good.names().any(|name| self.is_missing(name))
    }

    /// Returns the last good resources that Envoy waits for.
    pub(crate) fn missing(&self, good: &GoodType) -> Content {
        from_last_good(good, |name| self.is_missing(name))
    }

    fn is_missing(&self, name: &str) -> bool {
        let is_missing = match self.variant {
            Variant::Sotw => !self.had_resources && !self.names.has(Mark::Delivered, name),
            Variant::Delta => !self.names.has(Mark::Held, name) && !self.names.has(Mark::Delivered, name),
        };
        // A resource of the agent itself has no name.
        !name.is_empty() && is_missing && self.subscribes_to(name)
    }

    /// Returns the size of all unacknowledged responses in bytes.
    pub(crate) fn in_flight_size(&self) -> usize {
        self.in_flight.iter().map(|delivered| delivered.size).sum()
    }

    /// Returns the number and the size of the unacknowledged responses after the first one. Envoy
    /// acknowledges clusters only after it has received their endpoints, so one response of a type
    /// must not delay the others.
    pub(crate) fn waiting_behind_first(&self) -> (usize, usize) {
        let behind = || self.in_flight.iter().skip(1);
        (behind().count(), behind().map(|delivered| delivered.size).sum())
    }
}
