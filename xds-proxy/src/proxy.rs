//! The state machine of the proxy: events of Envoy's stream, of the upstream stream and of the health
//! reporter go in, effects come out. Time and randomness are arguments.
//!
//! There is at most one upstream stream at a time. Without an Envoy, health reports alone need one.
//! If the upstream stream is lost, Envoy's stream stays open, and the next upstream stream receives
//! Envoy's node, subscriptions and versions. Envoy receives the proxy's own nonces, so an
//! acknowledgement never reaches a stream that did not send the response.

mod downstream;
mod from_cache;
mod health;
mod limits;
mod own;
mod refused;
mod storage;
mod types;
mod upstream;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use pacing::Backoff;
use workload_health::reporter::{self, Reporter};
use xds::{Node, Variant};

use crate::last_good::LastGood;
use crate::type_state::TypeState;
use health::Health;
pub use storage::Write;
use storage::{Outcome, Storage};
use types::{Age, Counters};
pub use types::{Effect, Event, HealthEvent, Input, OwnResource, ProxySettings, ProxyView, TypeView};

/// Pauses before connection attempts: the first upper bound, and with and without an Envoy the lower bound
/// of all pauses and the largest upper bound. An Envoy waits for its configuration, but health reports of
/// many machines must not overload a server.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const DELAYS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(10)];
const DELAYS_ALONE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(30)];
/// How long health alone waits for the first request of a connected Envoy, which has the node that the
/// control plane needs to know first. Also how long a stream stays open after that of Envoy has ended.
const ENVOY_GRACE: Duration = Duration::from_secs(5);
/// After changed certificates the upstream stream is reopened within this time, with random jitter.
const REOPEN_WITHIN: Duration = Duration::from_secs(30);
/// Unacknowledged responses, besides the first of each type, at which the proxy stops reading the
/// upstream stream, and their size.
const IN_FLIGHT_LIMIT: usize = 16;
const IN_FLIGHT_SIZE: usize = 8 << 20;
/// Size of all unacknowledged responses at which it stops, in bytes.
const IN_FLIGHT_TOTAL: usize = 64 << 20;
/// A stream that was answered and stayed open this long resets the pauses between attempts.
const STABLE_AFTER: Duration = Duration::from_secs(5);
/// Maximum length of a type URL in bytes.
const TYPE_URL_LIMIT: usize = 256;
/// An Envoy that acknowledges nothing for this long, while the limit is reached, is disconnected.
const ACK_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of resource types of one stream.
const TYPE_LIMIT: usize = 64;
/// Why an Envoy is disconnected whose subscriptions exceed the limits.
const TOO_MANY_NAMES: &str = "more than 100,000 names of one type, or more than 32 MiB of names";
/// How often the stored configuration is marked as current while a control plane answers.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(60);

/// The connection to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upstream {
    /// Neither Envoy nor health reports need one now.
    Idle,
    /// The next attempt starts at this time.
    Waiting(Duration),
    Connecting,
    Open(Open),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    variant: Variant,
    since: Duration,
    /// True once a response has arrived.
    is_answered: bool,
    /// True once a request with the node was sent.
    is_introduced: bool,
    /// True if that was the agent's own request: the stream carries health reports and nothing of Envoy.
    is_alone: bool,
    /// When the first request was sent.
    introduced_at: Duration,
    /// True once a request for listeners was sent.
    is_listening: bool,
    /// True once the agent's own types were requested.
    has_own: bool,
    /// Set after the end of Envoy's stream: when to close this one.
    close_at: Option<Duration>,
}

/// The current stream of Envoy.
#[derive(Debug)]
struct Downstream {
    variant: Variant,
    /// The encoded node of Envoy.
    node: Bytes,
    /// The types, in the order in which Envoy requested them.
    types: Vec<TypeState>,
}

/// The proxy between one Envoy and its control plane.
#[derive(Debug)]
pub struct Proxy {
    settings: ProxySettings,
    downstream: Option<Downstream>,
    upstream: Upstream,
    /// Number of upstream streams so far; the number of the current one.
    stream: u64,
    /// Node of the agent, which overrides fields of Envoy's node.
    node: Box<Node>,
    last_nonce: u64,
    backoff: Backoff,
    /// When health alone may open a stream.
    alone_at: Duration,
    /// True from a failed attempt or a lost stream to the next response.
    is_outage: bool,
    /// Why the last upstream stream or attempt ended.
    error: Option<String>,
    good: LastGood,
    /// Types that are not stored, and why. One is stored again once a complete set of it fits.
    not_stored: BTreeMap<String, &'static str>,
    /// Types that Envoy received from the cache on an earlier stream: their age, and since when.
    from_cache: BTreeMap<String, (Duration, Duration)>,
    age: Age,
    storage: Storage,
    confirm_at: Option<Duration>,
    reopen_at: Option<Duration>,
    health: Health,
    counters: BTreeMap<String, Counters>,
    /// Responses of types that Envoy does not subscribe to.
    not_subscribed: u64,
    /// True once the agent terminates.
    is_terminating: bool,
}

impl Proxy {
    /// Creates a proxy without streams. `stored` is the stored configuration and its age.
    pub fn new(settings: ProxySettings, reporter: Reporter, stored: Option<(LastGood, Duration)>) -> Self {
        let storage = Storage::new(settings.max_age.is_some(), stored.is_some());
        let (good, age) = stored.map_or((LastGood::default(), None), |(good, age)| (good, Some(age)));
        Self {
            downstream: None,
            upstream: Upstream::Idle,
            stream: 0,
            node: Box::default(),
            last_nonce: 0,
            backoff: Backoff::new(FIRST_DELAY, FIRST_DELAY),
            alone_at: if settings.serves_envoy { ENVOY_GRACE } else { Duration::ZERO },
            is_outage: false,
            error: None,
            good,
            not_stored: BTreeMap::new(),
            from_cache: BTreeMap::new(),
            age: Age::new(age),
            storage,
            confirm_at: None,
            reopen_at: None,
            health: Health::new(reporter),
            counters: BTreeMap::new(),
            not_subscribed: 0,
            is_terminating: false,
            settings,
        }
    }

    /// Processes one input. `now` is the time since the agent's start; `random` returns numbers in
    /// 0..1.
    pub fn step(&mut self, now: Duration, input: Input, random: &mut dyn FnMut() -> f64) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::EnvoyOpened(variant) => self.envoy_opened(now, variant, &mut effects),
            Input::EnvoyRequest(message) => self.envoy_request(now, &message, &mut effects),
            Input::EnvoyClosed => self.envoy_closed(now, &mut effects),
            Input::UpstreamOpened { node, server } => {
                self.upstream_opened(now, node, server, &mut effects);
            }
            Input::UpstreamResponse(message) => self.upstream_response(now, message, random, &mut effects),
            Input::UpstreamClosed { is_rejected, reason } => {
                self.upstream_closed(now, is_rejected, reason, random, &mut effects);
            }
            Input::Health(status) => {
                self.step_reporter(now, reporter::Input::Status(status), random, &mut effects);
            }
            Input::ProbeValidated { hello, result } => {
                let input = reporter::Input::Validated { hello, result };
                self.step_reporter(now, input, random, &mut effects);
            }
            // A later connection uses the current files.
            Input::FilesChanged if matches!(self.upstream, Upstream::Open(_) | Upstream::Connecting) => {
                self.reopen_at.get_or_insert(now + REOPEN_WITHIN.mul_f64(random()));
            }
            Input::FilesChanged => {}
            Input::OwnChecked { resource, result } => self.own_checked(now, resource, result, &mut effects),
            Input::Stored { packed, result } => {
                self.good.adopt(&packed);
                self.stored(now, result, &mut effects);
            }
            Input::Terminating => {
                self.terminate(now);
                self.step_reporter(now, reporter::Input::Shutdown, random, &mut effects);
            }
            Input::Tick => {}
        }
        self.run_due(now, random, &mut effects);
        effects
    }

    /// When the next [`Input::Tick`] is due.
    pub fn next_due(&self) -> Option<Duration> {
        let upstream = match self.upstream {
            Upstream::Waiting(until) => Some(until),
            Upstream::Open(open) => self.alone_due(open).or(open.close_at),
            Upstream::Idle => {
                (self.downstream.is_none() && self.health_needs_stream()).then_some(self.alone_at)
            }
            Upstream::Connecting => None,
        };
        let is_open = matches!(self.upstream, Upstream::Open(_));
        let reopen = self.reopen_at.filter(|_| is_open && !self.is_terminating);
        let confirm = self.confirm_at.filter(|_| is_open);
        let due = [
            upstream,
            self.storage.due(),
            confirm,
            reopen,
            self.cache_due(),
            self.ack_due(),
            self.health_due(),
            self.health.reporter.next_due(),
        ];
        due.into_iter().flatten().min()
    }

    /// Returns true if responses of the control plane may be read. Otherwise Envoy must acknowledge
    /// first.
    pub fn reads_upstream(&self) -> bool {
        let Some(downstream) = &self.downstream else { return true };
        let types = || downstream.types.iter();
        let (count, size) = types()
            .map(TypeState::waiting_behind_first)
            .fold((0, 0), |(count, size), (more, bytes)| (count + more, size + bytes));
        let total: usize = types().map(TypeState::in_flight_size).sum();
        count < IN_FLIGHT_LIMIT && size < IN_FLIGHT_SIZE && total < IN_FLIGHT_TOTAL
    }

    /// Returns the variant of the next upstream stream.
    pub fn variant(&self) -> Variant {
        self.downstream.as_ref().map_or(self.settings.variant, |downstream| downstream.variant)
    }

    /// Returns the state of the health reports.
    pub fn reporter(&self) -> &Reporter {
        &self.health.reporter
    }

    /// When health alone introduces itself on a stream that was opened for an Envoy, which has sent
    /// no request yet. The final report does not wait. The stream of an Envoy that has gone is closed.
    fn alone_due(&self, open: Open) -> Option<Duration> {
        if open.is_introduced || !self.health_needs_stream() {
            return None;
        }
        match self.is_terminating {
            true => Some(open.since),
            false => self.downstream.is_some().then_some(open.since + ENVOY_GRACE),
        }
    }

    /// Returns the last good configuration, whose resources are shared with the copy.
    pub fn last_good(&self) -> LastGood {
        self.good.clone()
    }

    /// Returns true if nothing waits to be stored.
    pub fn is_stored(&self) -> bool {
        self.storage.is_idle()
    }

    /// Returns why the last write of the configuration failed.
    pub fn store_error(&self) -> Option<&str> {
        self.storage.error()
    }

    fn stored(&mut self, now: Duration, result: Result<(), String>, effects: &mut Vec<Effect>) {
        match self.storage.finished(now, result) {
            Outcome::Same => {}
            Outcome::Failed => {
                let error = self.storage.error().unwrap_or_default().to_owned();
                effects.push(Effect::Event(Event::StoreFailed { error }));
            }
            Outcome::Recovered => effects.push(Effect::Event(Event::StoredAgain)),
        }
    }

    /// The upstream stream stays open for the final health report, also after Envoy has closed its
    /// stream, and the last configuration is stored.
    fn terminate(&mut self, now: Duration) {
        self.is_terminating = true;
        self.storage.terminate(now);
        self.alone_at = self.alone_at.min(now);
        match &mut self.upstream {
            Upstream::Open(open) => open.close_at = None,
            // A later attempt could not deliver the final report in time.
            Upstream::Waiting(until) => *until = now.min(*until),
            Upstream::Idle | Upstream::Connecting => {}
        }
    }

    fn run_due(&mut self, now: Duration, random: &mut dyn FnMut() -> f64, effects: &mut Vec<Effect>) {
        let is_due = |at: Option<Duration>| at.is_some_and(|at| now >= at);
        let connect_at = match self.upstream {
            Upstream::Waiting(until) => Some(until),
            Upstream::Idle => Some(self.alone_at).filter(|_| self.downstream.is_none()),
            Upstream::Connecting | Upstream::Open(_) => None,
        };
        if is_due(connect_at) {
            self.upstream = Upstream::Idle;
            if self.downstream.is_some() || self.health_needs_stream() {
                self.upstream = Upstream::Connecting;
                self.reopen_at = None;
                effects.push(Effect::Connect);
            }
        }
        if let Upstream::Open(open) = self.upstream {
            if is_due(open.close_at) {
                effects.push(Effect::CloseUpstream);
                self.health.ended_by_agent(now);
                self.health.closed(now, effects);
                self.upstream_ended(now);
                self.upstream = Upstream::Idle;
            } else if is_due(self.reopen_at) && !self.is_terminating {
                self.reopen_at = None;
                self.reopen_upstream(now, effects);
            } else if is_due(self.confirm_at) {
                self.confirm_at = Some(now + CONFIRM_INTERVAL);
                self.storage.confirmed();
            } else if is_due(self.alone_due(open)) {
                self.introduce_alone(now, effects);
            }
        }
        if is_due(self.ack_due()) {
            self.disconnect_envoy(now, "Envoy acknowledged no response for 30 s", effects);
        }
        self.run_health(now, random, effects);
        self.serve_from_cache(now, effects);
        if let Some(write) = self.storage.start(now) {
            effects.push(Effect::Store { write, age: self.good_age(now).unwrap_or_default() });
        }
    }
}

#[cfg(test)]
mod tests;
