//! The state of one resource type on the current stream of Envoy: what Envoy subscribes to, which
//! responses it has not acknowledged, and which request each upstream stream has received.

mod content;
mod replay;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::last_good::GoodType;
use crate::names::Names;
use crate::wire::{ITEM_LIMIT, Request, Variant, is_complete};
pub(crate) use content::{Content, from_last_good};
use replay::unknown_versions;

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

/// A response that Envoy has received and not acknowledged yet.
#[derive(Debug, Clone)]
pub(crate) struct Delivered {
    /// The nonce that Envoy received.
    pub(crate) ours: u64,
    /// `None` for a response from the last good configuration.
    pub(crate) server: Option<ServerNonce>,
    pub(crate) content: Content,
    /// Size of the message and of its content in memory, in bytes.
    pub(crate) size: usize,
    pub(crate) at: Duration,
}

/// What a request says about the responses before it.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Envoy accepted a response.
    Ack(Delivered),
    /// Envoy rejected a response with this text.
    Nack(String),
    /// Nothing: a change of the subscription.
    None,
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
    /// `version_info` of the last request.
    version: String,
    /// Names and versions that Envoy holds, in the incremental variant.
    held: Names,
    pub(crate) in_flight: VecDeque<Delivered>,
    /// The newest nonce that Envoy received, and the server's nonce for it.
    last: Option<(u64, Option<ServerNonce>)>,
    /// The upstream stream that received a request of this type, 0 for none.
    requested_on: u64,
    /// True from the repetition of the subscription after a reconnect to the next response.
    awaits_replay: bool,
    /// True if Envoy waits for a response, even for an unchanged one.
    wants_answer: bool,
    /// True if Envoy holds exactly the last good resources.
    is_synced: bool,
    /// True if Envoy had resources of this type before this stream.
    pub(crate) had_resources: bool,
    /// True if the first request on the upstream stream named a version that Envoy holds.
    has_sent_version: bool,
    /// True once a response of the control plane was delivered on this stream of Envoy.
    is_answered: bool,
    requested_at: Duration,
    /// Names that were delivered on this stream of Envoy.
    delivered: Names,
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
            held: Names::default(),
            in_flight: VecDeque::new(),
            last: None,
            requested_on: 0,
            awaits_replay: false,
            wants_answer: true,
            is_synced: false,
            had_resources: false,
            has_sent_version: false,
            is_answered: false,
            requested_at: now,
            delivered: Names::default(),
            is_untracked: false,
            from_cache: None,
        }
    }

    pub(crate) fn type_url(&self) -> &str {
        &self.type_url
    }

    pub(crate) fn names(&self) -> usize {
        self.names.len()
    }

    /// Returns true if Envoy wants any resources of this type.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.is_wildcard || !self.names.is_empty()
    }

    pub(crate) fn subscribes_to(&self, name: &str) -> bool {
        self.is_wildcard || self.names.contains(name)
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
        let names = self.names.size() + self.held.size() + self.delivered.size();
        names + self.subscription.len() + self.version.len()
    }

    /// Returns true if there are more names than the proxy keeps, or some were not read.
    pub(crate) fn has_too_many_names(&self) -> bool {
        let is_cut = |delivered: &Delivered| delivered.content.is_cut;
        !self.is_untracked && self.in_flight.back().is_some_and(is_cut)
            || [&self.names, &self.held, &self.delivered].iter().any(|names| names.len() > ITEM_LIMIT)
    }

    /// Forgets what Envoy holds.
    pub(crate) fn untrack(&mut self) {
        self.is_untracked = true;
        self.held.clear();
        self.delivered.clear();
    }

    pub(crate) fn is_untracked(&self) -> bool {
        self.is_untracked
    }

    /// Returns true if another upstream stream would have to learn what Envoy holds, which only Envoy
    /// knows.
    pub(crate) fn cannot_be_replayed(&self) -> bool {
        self.is_untracked && self.variant == Variant::Delta && self.is_subscribed()
    }

    /// Processes a request of Envoy. `stream` is the number of the open upstream stream. Returns what
    /// the request says, and the request for the control plane, without a node.
    pub(crate) fn request(&mut self, request: Request, stream: Option<u64>) -> (Verdict, Option<Request>) {
        let (server, verdict) = self.settle(&request);
        let is_changed = self.subscribe(&request);
        self.wants_answer |= matches!(verdict, Verdict::None);
        let Some(stream) = stream else { return (verdict, None) };
        if self.requested_on != stream {
            return (verdict, self.first_request(stream));
        }
        let server = server.filter(|server| server.stream == stream).map(|server| server.nonce);
        let nonce = match (self.variant, server) {
            (_, Some(nonce)) => Some(nonce),
            // A response of another stream must not be acknowledged on this one.
            (Variant::Delta, None) => (!request.subscription.is_empty()).then(String::new),
            (Variant::Sotw, None) => (is_changed || self.wants_answer).then(|| self.newest(stream)).flatten(),
        };
        let forwarded = nonce.map(|nonce| Request {
            error: request.error.filter(|_| !nonce.is_empty()),
            initial_versions: Vec::new(),
            node: None,
            nonce,
            ..request
        });
        self.awaits_replay &= forwarded.is_none();
        (verdict, forwarded)
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

    /// Finds the response that a request acknowledges, and the server's nonce for the request.
    fn settle(&mut self, request: &Request) -> (Option<ServerNonce>, Verdict) {
        let Ok(nonce) = request.nonce.parse::<u64>() else { return (None, Verdict::None) };
        let Some(position) = self.in_flight.iter().position(|delivered| delivered.ours == nonce) else {
            let last = self.last.as_ref().filter(|(ours, _)| *ours == nonce);
            return (last.and_then(|(_, server)| server.clone()), Verdict::None);
        };
        // Envoy acknowledges in order, and may do so only for the newest of several.
        self.in_flight.drain(..position);
        let Some(delivered) = self.in_flight.pop_front() else { return (None, Verdict::None) };
        let server = delivered.server.clone();
        match request.error_text() {
            Some(text) => {
                self.reject(&delivered);
                (server, Verdict::Nack(text))
            }
            None => (server, Verdict::Ack(delivered)),
        }
    }

    /// Envoy may have applied a part of a rejected response, so what it holds is unknown.
    fn reject(&mut self, delivered: &Delivered) {
        self.is_synced = false;
        if delivered.server.is_none() {
            self.from_cache = None;
        }
        if self.variant == Variant::Delta && !self.is_untracked {
            self.held.extend(unknown_versions(delivered));
        }
    }

    /// Updates the subscription and returns true if it has changed.
    fn subscribe(&mut self, request: &Request) -> bool {
        let is_first = self.last.is_none() && self.requested_on == 0 && !self.is_subscribed();
        match self.variant {
            Variant::Sotw => {
                self.had_resources |= is_first && !request.version.is_empty();
                self.version.clone_from(&request.version);
                let names: Names = request.subscribe.iter().cloned().collect();
                self.is_wildcard = names.contains(WILDCARD)
                    || names.is_empty() && (is_first || self.is_wildcard || is_complete(&self.type_url));
                let is_changed = self.subscription != request.subscription;
                self.subscription = request.subscription.clone();
                self.delivered.retain(|name| names.contains(name));
                self.names = names;
                is_changed
            }
            Variant::Delta => {
                self.is_wildcard |= is_first && request.subscribe.is_empty()
                    || request.subscribe.iter().any(|name| name == WILDCARD);
                for name in &request.subscribe {
                    // The server must send it again, even if it is unchanged.
                    self.held.remove(name);
                    self.names.insert(name.clone(), String::new());
                }
                for name in &request.unsubscribe {
                    self.names.remove(name);
                    self.delivered.remove(name);
                    self.is_wildcard &= name != WILDCARD;
                }
                for name in request.unsubscribe.iter().filter(|_| !self.is_wildcard) {
                    self.held.remove(name);
                }
                self.had_resources |= is_first && !request.initial_versions.is_empty();
                if !self.is_untracked {
                    self.held.extend(request.initial_versions.iter().cloned());
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

    /// Records a response that is sent to Envoy.
    pub(crate) fn deliver(&mut self, mut delivered: Delivered) {
        if delivered.server.is_some() {
            self.confirm();
        }
        self.wants_answer = false;
        self.last = Some((delivered.ours, delivered.server.clone()));
        if delivered.content.is_cut {
            delivered.content.forget_resources();
        }
        if !self.is_untracked {
            let names = delivered.content.resources.iter().map(|resource| resource.name.clone());
            self.delivered.extend(names.map(|name| (name, String::new())));
        }
        self.in_flight.push_back(delivered);
    }

    /// Applies an accepted response: to the versions that Envoy holds, and to the last good
    /// resources.
    pub(crate) fn accept(&mut self, delivered: Delivered, good: &mut GoodType) {
        let Delivered { server, content, .. } = delivered;
        if self.variant == Variant::Delta && !self.is_untracked {
            for name in &content.removed {
                self.held.remove(name);
                self.delivered.remove(name);
            }
            let named = content.resources.iter().filter(|new| !new.name.is_empty());
            self.held.extend(named.map(|new| (new.name.clone(), new.version.clone())));
        }
        self.is_synced = true;
        if server.is_some() {
            content.apply(good, self.receives_whole_sets());
            if !self.is_wildcard {
                good.retain(|name| self.names.contains(name));
            }
        }
    }

    /// Returns the last good resources that Envoy waits for, `None` if there are none.
    pub(crate) fn missing(&self, good: &GoodType) -> Option<Content> {
        let is_first = self.last.is_none() && !self.had_resources;
        if self.is_untracked
            || !self.is_subscribed()
            || self.variant == Variant::Sotw && is_complete(&self.type_url) && !is_first
        {
            return None;
        }
        let is_missing = |name: &str| match self.variant {
            Variant::Sotw => !self.had_resources && !self.delivered.contains(name),
            Variant::Delta => !self.held.contains(name) && !self.delivered.contains(name),
        };
        let wanted = good.resources().iter().filter(|(name, _)| self.subscribes_to(name) && is_missing(name));
        let content = from_last_good(good, wanted);
        let is_empty_set = is_first && self.is_wildcard && self.held.is_empty();
        (!content.resources.is_empty() || is_empty_set).then_some(content)
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
