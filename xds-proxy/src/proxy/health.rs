//! Health reports on the upstream stream. Envoy never sees them. Without an Envoy, the stream carries
//! nothing else.
//!
//! A control plane that does not know the type of the reports may end the stream, which is Envoy's too.
//! One that does so twice in a row gets no reports for some time.

use std::collections::BTreeMap;
use std::time::Duration;

use pacing::exponential;
use serde_json::json;
use workload_health::health_report::APP_HEALTH_REPORT;
use workload_health::reporter::{self, Reporter};
use workload_health::{Hello, Report, State};
use xds::health::{HealthResponse, ack_or_nack, first_request, report};
use xds::{Node, Request};

use super::types::{Effect, Event, HealthEvent};
use super::{Open, Proxy, Upstream};

/// Reports follow Envoy's request for listeners, as in Istio, or this time after the first request:
/// an Envoy with static listeners sends none.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(10);

/// A stream that ends within this time after a report, without an answer to it, may have been ended
/// because of the report.
const REFUSED_WITHIN: Duration = Duration::from_secs(5);
/// After this many such streams of a server in a row, the reports count as the reason. After the
/// first one, the next report waits until Envoy has had time to get its configuration.
const REFUSALS: u32 = 2;
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long a server that refuses reports gets none: the first time, and at most. After that the
/// open stream carries them again: the others may have ended for another reason.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// What is known of a server that has ended streams after reports.
#[derive(Debug, Default)]
struct Refusal {
    /// Number of such streams in a row.
    streams: u32,
    /// Until when the server gets no reports.
    until: Duration,
}

/// The health reports, and what is known of the servers.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) reporter: Reporter,
    /// True if reports use the current stream.
    is_open: bool,
    /// The newest hello message that arrived before reports could be sent.
    hello: Option<HealthResponse>,
    /// Name of the server of the current stream.
    server: String,
    /// When the first report was sent on the current stream of Envoy; `None` once the server has shown
    /// that it accepts reports.
    reported_at: Option<Duration>,
    /// True if the server has shown that on the current stream.
    is_accepted: bool,
    /// By the name of the server, of which few are configured.
    refusals: BTreeMap<String, Refusal>,
}

impl Health {
    pub(super) fn new(reporter: Reporter) -> Self {
        Self {
            reporter,
            is_open: false,
            hello: None,
            server: String::new(),
            reported_at: None,
            is_accepted: false,
            refusals: BTreeMap::new(),
        }
    }

    pub(super) fn opened(&mut self, server: String) {
        self.server = server;
        (self.reported_at, self.is_accepted) = (None, false);
    }

    /// Returns true if the server of the current stream gets no reports.
    pub(super) fn is_paused(&self, now: Duration) -> bool {
        now < self.paused_until()
    }

    fn paused_until(&self) -> Duration {
        self.refusals.get(&self.server).map_or(Duration::ZERO, |refusal| refusal.until)
    }

    fn sent(&mut self, now: Duration) {
        if !self.is_accepted {
            self.reported_at.get_or_insert(now);
            self.check_outlived(now);
        }
    }

    /// A server accepts reports if its stream outlives the first one.
    fn check_outlived(&mut self, now: Duration) {
        if self.reported_at.is_some_and(|at| now.saturating_sub(at) > REFUSED_WITHIN) {
            self.accepted();
        }
    }

    fn accepted(&mut self) {
        self.is_accepted = true;
        self.reported_at = None;
        self.refusals.remove(&self.server);
    }

    /// Records that the agent has ended the stream, which refuses no report.
    pub(super) fn ended_by_agent(&mut self, now: Duration) {
        self.check_outlived(now);
        self.reported_at = None;
    }

    /// Records that the server has ended the stream. Returns true if a report may be the reason.
    pub(super) fn ended_by_server(&mut self, now: Duration, effects: &mut Vec<Effect>) -> bool {
        self.check_outlived(now);
        if self.reported_at.take().is_none() {
            return false;
        }
        let server = self.server.clone();
        let refusal = self.refusals.entry(server.clone()).or_default();
        refusal.streams = refusal.streams.saturating_add(1);
        if let Some(pauses) = refusal.streams.checked_sub(REFUSALS) {
            let pause = exponential(FIRST_PAUSE, MAX_PAUSE, pauses);
            refusal.until = now.saturating_add(pause);
            effects.push(Effect::Event(Event::HealthRefused { server, pause }));
        }
        true
    }

    /// Records the end of the stream.
    pub(super) fn closed(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.hello = None;
        if std::mem::take(&mut self.is_open) {
            effects.push(Effect::Health(HealthEvent::Closed));
            // Nothing is sent without a stream, so nothing is random.
            let ended = self.reporter.step(now, reporter::Input::Closed, &mut || 0.0);
            effects
                .extend(ended.contains(&reporter::Effect::Done).then_some(Effect::Health(HealthEvent::Done)));
        }
    }
}

impl Proxy {
    /// Returns true if an upstream stream is needed although there is no Envoy.
    pub(super) fn health_needs_stream(&self) -> bool {
        !self.health.reporter.is_done()
    }

    /// Passes an input to the reporter, and carries out its effects.
    pub(super) fn step_reporter(
        &mut self,
        now: Duration,
        input: reporter::Input,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        for effect in self.health.reporter.step(now, input, random) {
            self.apply_of_reporter(now, effect, effects);
        }
    }

    fn apply_of_reporter(&mut self, now: Duration, effect: reporter::Effect, effects: &mut Vec<Effect>) {
        let event = match effect {
            reporter::Effect::Send(report, attempt) => {
                self.send_report(now, report, effects);
                HealthEvent::Sent(attempt)
            }
            reporter::Effect::AckOrNack { version, nonce, nack_reason } => {
                return self.send_health(ack_or_nack(version, nonce, nack_reason.as_deref()), effects);
            }
            reporter::Effect::ValidateProbe { hello, probe } => HealthEvent::ValidateProbe { hello, probe },
            reporter::Effect::NothingToReport => HealthEvent::NothingToReport,
            reporter::Effect::Unresponsive => return self.reopen_upstream(now, effects),
            reporter::Effect::Delivered => {
                if self.downstream.is_none() {
                    effects.push(Effect::HalfCloseUpstream);
                }
                return;
            }
            reporter::Effect::Done => {
                if self.downstream.is_none() && self.upstream != Upstream::Idle {
                    effects.push(Effect::CloseUpstream);
                    self.health.closed(now, effects);
                    self.upstream_ended(now);
                    self.upstream = Upstream::Idle;
                }
                HealthEvent::Done
            }
        };
        effects.push(Effect::Health(event));
    }

    fn send_report(&mut self, now: Duration, status: Report, effects: &mut Vec<Effect>) {
        if matches!(self.upstream, Upstream::Open(Open { is_alone: false, .. })) {
            self.health.sent(now);
        }
        let request = match status {
            Report::Istio { healthy, message } => report((!healthy).then_some(&*message), None),
            Report::AppHealth(status) => {
                let metadata = json!({ APP_HEALTH_REPORT: status.to_json() });
                let node = Node { id: self.settings.identity.clone(), metadata, ..Node::default() };
                let error = (status.state != State::Healthy).then_some(&*status.message);
                report(error, Some(node.encode_identity()))
            }
        };
        self.send_health(request, effects);
    }

    fn send_health(&self, request: Request, effects: &mut Vec<Effect>) {
        if let Upstream::Open(open) = self.upstream {
            effects.push(Effect::SendUpstream(request.encode(open.variant)));
        }
    }

    /// Sends the first request of a stream that Envoy does not use.
    pub(super) fn introduce_alone(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let Upstream::Open(open) = &mut self.upstream else { return };
        (open.is_introduced, open.is_alone, open.introduced_at) = (true, true, now);
        self.send_health(first_request(self.node.encode()), effects);
    }

    /// Processes a response that belongs to the reporter.
    pub(super) fn health_response(
        &mut self,
        now: Duration,
        response: HealthResponse,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        self.health.accepted();
        if !self.health.is_open {
            if matches!(response, HealthResponse::Hello { .. }) {
                self.health.hello = Some(response);
            }
            return;
        }
        let (input, event) = match response {
            HealthResponse::Acknowledged(version) => {
                let event = HealthEvent::Acknowledged(version.clone());
                (reporter::Input::Acknowledged(version), Some(event))
            }
            HealthResponse::Hello { version, nonce, content } => {
                match content.and_then(|content| Hello::parse(&content)) {
                    Ok(hello) => {
                        let is_new = self.health.reporter.session() != Some(hello.session);
                        let event = is_new.then_some(HealthEvent::Session(hello.session));
                        (reporter::Input::Hello { hello, version, nonce }, event)
                    }
                    Err(text) => {
                        let event = HealthEvent::InvalidHello(text.clone());
                        (reporter::Input::Malformed { text, nonce }, Some(event))
                    }
                }
            }
        };
        effects.extend(event.map(Effect::Health));
        self.step_reporter(now, input, random, effects);
    }

    /// When reports may be sent on the current stream.
    pub(super) fn health_due(&self) -> Option<Duration> {
        let Upstream::Open(open) = self.upstream else { return None };
        if self.health.is_open || !open.is_introduced || self.health.reporter.is_done() {
            return None;
        }
        // There is no Envoy that a refused final report could harm.
        if open.is_alone || self.is_terminating && self.downstream.is_none() {
            return Some(open.introduced_at);
        }
        let delay = match open.is_listening {
            true if self.health.refusals.contains_key(&self.health.server) => RETRY_AFTER,
            true => Duration::ZERO,
            false => LISTENER_TIMEOUT,
        };
        Some(open.introduced_at.saturating_add(delay).max(self.health.paused_until()))
    }

    /// Lets the reporter use the stream once it may, and do what is due.
    pub(super) fn run_health(
        &mut self,
        now: Duration,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        if self.health_due().is_some_and(|due| now >= due) {
            self.health.is_open = true;
            effects.push(Effect::Health(HealthEvent::Opened));
            self.step_reporter(now, reporter::Input::Opened, random, effects);
            if let Some(hello) = self.health.hello.take() {
                self.health_response(now, hello, random, effects);
            }
        }
        if self.health.reporter.next_due().is_some_and(|due| now >= due) {
            self.step_reporter(now, reporter::Input::Tick, random, effects);
        }
    }
}
