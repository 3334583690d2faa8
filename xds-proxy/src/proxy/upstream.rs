//! Events of the upstream stream.

use std::time::Duration;

use bytes::Bytes;
use xds::health::HealthResponse;
use xds::{Node, Response};

use super::refused;
use super::types::{Effect, Event};
use super::{CONFIRM_INTERVAL, DELAYS, DELAYS_ALONE, Open, Proxy, STABLE_AFTER, TOO_MANY_NAMES, Upstream};
use crate::type_state::{Content, Delivered, ServerNonce, TypeState};

impl Proxy {
    pub(super) fn upstream_opened(
        &mut self,
        now: Duration,
        node: Box<Node>,
        server: String,
        effects: &mut Vec<Effect>,
    ) {
        if self.upstream != Upstream::Connecting {
            return;
        }
        self.health.opened(server);
        self.stream += 1;
        self.node = node;
        self.upstream = Upstream::Open(Open {
            variant: self.variant(),
            since: now,
            is_answered: false,
            is_introduced: false,
            is_alone: false,
            introduced_at: now,
            is_listening: false,
            has_own: false,
            close_at: None,
        });
        let Some(downstream) = &mut self.downstream else { return self.introduce_alone(now, effects) };
        if downstream.types.iter().any(TypeState::cannot_be_replayed) {
            let reason = "only Envoy knows the versions of more than 100,000 resources";
            return self.disconnect_envoy(now, reason, effects);
        }
        let stream = self.stream;
        let good = |type_url: &str| self.good.0.get(type_url).map(AsRef::as_ref);
        let first = |state: &mut TypeState| state.first_request(stream, good(state.type_url()));
        let replay: Vec<_> = downstream.types.iter_mut().filter_map(first).collect();
        for request in replay {
            self.send_upstream(now, request, effects);
        }
    }

    pub(super) fn upstream_response(
        &mut self,
        now: Duration,
        message: Bytes,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        let Upstream::Open(open) = &mut self.upstream else { return };
        let Ok(response) = Response::parse(&message, open.variant) else {
            return self.abort_upstream(now, "the control plane sent a malformed response", random, effects);
        };
        if open.is_alone {
            (self.is_outage, self.error) = (false, None);
        }
        if let Some(response) = HealthResponse::new(&response) {
            return self.health_response(now, response, random, effects);
        }
        if open.is_alone {
            return;
        }
        if !open.is_answered {
            open.is_answered = true;
            self.confirm_at = Some(now + CONFIRM_INTERVAL);
        }
        self.is_outage = false;
        self.error = None;
        if self.own_response(&response, effects) {
            return;
        }
        self.pass_on(now, message, response, effects);
    }

    /// Passes a response on to Envoy, unless Envoy does not need it.
    fn pass_on(&mut self, now: Duration, message: Bytes, response: Response, effects: &mut Vec<Effect>) {
        let Some(downstream) = &mut self.downstream else { return };
        let type_url = response.type_url.clone();
        // Envoy also acknowledges a response of a type that it has unsubscribed from meanwhile.
        let found = downstream.types.iter().position(|state| state.type_url() == type_url);
        let Some((index, state)) = found.and_then(|index| Some((index, downstream.types.get_mut(index)?)))
        else {
            self.not_subscribed += 1;
            if self.not_subscribed == 1 {
                effects.push(Effect::Event(Event::NotSubscribed { type_url }));
            }
            return;
        };
        let counters = self.counters.entry(type_url.clone()).or_default();
        counters.responses += 1;
        counters.bytes += u64::try_from(message.len()).unwrap_or(u64::MAX);
        counters.last_response = Some(now);
        let server = ServerNonce { stream: self.stream, nonce: response.nonce.clone() };
        if self.settings.refuses_remote_wasm
            && let Some(text) = refused::refusal(&response)
        {
            counters.nacks += 1;
            let last = counters.last_nack.replace((text.clone(), now));
            let request = state.refuse(server, &text);
            if last.is_none_or(|(last, _)| last != text) {
                effects.push(Effect::Event(Event::Refused { type_url, text }));
            }
            return self.send_upstream(now, request, effects);
        }
        let content = Content::from(response);
        let was_stale = state.from_cache.is_some();
        let good = self.good.0.get(&type_url).map(AsRef::as_ref);
        if state.is_repetition(&content, good) {
            counters.unchanged += 1;
            let request = state.skip(server, &content);
            self.age.confirm(now);
            self.send_upstream(now, request, effects);
        } else {
            self.last_nonce += 1;
            let (size, version) = (message.len() + content.size(), content.version.clone());
            let (ours, server) = (self.last_nonce, Some(server));
            let suffix = state.deliver(Delivered { ours, server, version, content, size, at: now }, good);
            effects.push(Effect::SendEnvoy(message, suffix));
            if !self.limit_names(now, index, effects) {
                return self.disconnect_envoy(now, TOO_MANY_NAMES, effects);
            }
        }
        if was_stale && self.stale(now).is_none() {
            effects.push(Effect::Event(Event::NoLongerStale));
        }
    }

    pub(super) fn upstream_closed(
        &mut self,
        now: Duration,
        is_rejected: bool,
        reason: String,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        if !matches!(self.upstream, Upstream::Open(_) | Upstream::Connecting) {
            return;
        }
        let is_report_refused = self.health.ended_by_server(now, effects);
        self.health.closed(now, effects);
        self.upstream_ended(now);
        // The next connection uses the current files.
        self.reopen_at = None;
        self.is_outage = true;
        self.error = Some(reason);
        if is_rejected && !is_report_refused {
            // Another attempt would be rejected too.
            self.backoff.jump_to_max();
        }
        let is_closing = matches!(self.upstream, Upstream::Open(Open { close_at: Some(_), .. }));
        let is_alone = self.downstream.is_none();
        if is_alone && (is_closing || !self.health_needs_stream()) {
            self.upstream = Upstream::Idle;
            return;
        }
        let [min, max] = if is_alone { DELAYS_ALONE } else { DELAYS };
        self.backoff.set_max(max);
        self.upstream = Upstream::Waiting(now + self.backoff.next_with_jitter(min, random()));
    }

    /// Replaces a working upstream stream by another one.
    pub(super) fn reopen_upstream(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if let Upstream::Open(open) = self.upstream {
            effects.push(Effect::CloseUpstream);
            self.health.ended_by_agent(now);
            self.health.closed(now, effects);
            self.upstream_ended(now);
            self.upstream = match open.close_at {
                Some(_) => Upstream::Idle,
                None => Upstream::Waiting(now + DELAYS[0]),
            };
        }
    }

    /// Closes the upstream stream because of a fault of the control plane.
    pub(super) fn abort_upstream(
        &mut self,
        now: Duration,
        reason: &'static str,
        random: &mut dyn FnMut() -> f64,
        effects: &mut Vec<Effect>,
    ) {
        if matches!(self.upstream, Upstream::Open(_)) {
            effects.push(Effect::AbortUpstream(reason));
            self.health.ended_by_agent(now);
            self.upstream_closed(now, false, reason.to_owned(), random, effects);
        }
    }

    /// Returns true if the upstream stream is open, was answered, and did not end soon. istiod answers no
    /// health report.
    pub fn was_stable(&self, now: Duration) -> bool {
        let Upstream::Open(Open { is_answered, is_alone, since, .. }) = self.upstream else { return false };
        (is_answered || is_alone) && now.saturating_sub(since) >= STABLE_AFTER
    }

    /// Records until when the control plane has confirmed the configuration. A stable stream also
    /// resets the pauses between attempts. The state of the upstream stream changes after this.
    pub(super) fn upstream_ended(&mut self, now: Duration) {
        if self.was_stable(now) {
            self.backoff.reset();
        }
        if let Upstream::Open(Open { is_answered: true, .. }) = self.upstream {
            self.age.confirm(now);
            self.storage.confirmed();
        }
        self.confirm_at = None;
    }
}
