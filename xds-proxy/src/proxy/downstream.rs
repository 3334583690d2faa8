//! Events of Envoy's stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xds::type_url::{LISTENER, SECRET};
use xds::{Request, Variant};

use super::limits;
use super::types::{Effect, Event};
use super::{
    ACK_TIMEOUT, Downstream, ENVOY_GRACE, Proxy, TOO_MANY_NAMES, TYPE_LIMIT, TYPE_URL_LIMIT, Upstream,
};
use crate::type_state::{Delivered, TypeState, Verdict};

/// Longest text of a NACK that is kept, in characters.
const TEXT_LIMIT: usize = 1024;

impl Proxy {
    pub(super) fn envoy_opened(&mut self, now: Duration, variant: Variant, effects: &mut Vec<Effect>) {
        if matches!(self.upstream, Upstream::Open(_) | Upstream::Connecting) {
            effects.push(Effect::CloseUpstream);
            self.health.ended_by_agent(now);
            self.health.closed(now, effects);
            self.upstream_ended(now);
            self.upstream = Upstream::Idle;
        }
        if self.downstream.is_none() && matches!(self.upstream, Upstream::Waiting(_)) {
            // The pause was that of health reports, which can be longer.
            self.upstream = Upstream::Idle;
        }
        self.remember_from_cache();
        if self.counters.len() > TYPE_LIMIT {
            // Envoy subscribed to other types on its earlier streams.
            self.counters.clear();
        }
        self.downstream = Some(Downstream { variant, node: Bytes::new(), types: Vec::new() });
        if self.upstream == Upstream::Idle {
            self.upstream = Upstream::Connecting;
            effects.push(Effect::Connect);
        }
    }

    pub(super) fn envoy_closed(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.remember_from_cache();
        self.downstream = None;
        self.alone_at = if self.is_terminating { now } else { now + ENVOY_GRACE };
        match &mut self.upstream {
            Upstream::Open(open) if open.is_alone => {}
            Upstream::Open(open) => open.close_at = (!self.is_terminating).then_some(now + ENVOY_GRACE),
            Upstream::Connecting if self.is_terminating => {}
            Upstream::Connecting => {
                self.upstream = Upstream::Idle;
                effects.push(Effect::CloseUpstream);
            }
            Upstream::Waiting(_) | Upstream::Idle => self.upstream = Upstream::Idle,
        }
    }

    /// Envoy keeps its resources when its stream ends.
    fn remember_from_cache(&mut self) {
        let Some(downstream) = &self.downstream else { return };
        let served = |state: &TypeState| Some((state.type_url().to_owned(), state.from_cache?));
        self.from_cache = downstream.types.iter().filter_map(served).collect();
    }

    pub(super) fn disconnect_envoy(
        &mut self,
        now: Duration,
        reason: &'static str,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::CloseEnvoy(reason));
        self.envoy_closed(now, effects);
    }

    pub(super) fn envoy_request(&mut self, now: Duration, message: &Bytes, effects: &mut Vec<Effect>) {
        let Some(downstream) = &mut self.downstream else { return };
        let variant = downstream.variant;
        let request = match Request::parse(message, variant) {
            Ok(request) if (1..=TYPE_URL_LIMIT).contains(&request.type_url.len()) => request,
            _ => return self.disconnect_envoy(now, "malformed request", effects),
        };
        if request.is_cut {
            return self.disconnect_envoy(now, TOO_MANY_NAMES, effects);
        }
        if let Some(node) = &request.node {
            downstream.node = node.clone();
        }
        if matches!(self.upstream, Upstream::Open(open) if open.is_alone) {
            // The control plane must know Envoy's node first.
            self.reopen_upstream(now, effects);
        }
        let Some(downstream) = &mut self.downstream else { return };
        let type_url = request.type_url.clone();
        let index = match downstream.types.iter().position(|state| state.type_url() == type_url) {
            Some(index) => index,
            None if downstream.types.len() >= TYPE_LIMIT => {
                return self.disconnect_envoy(now, "more than 64 resource types", effects);
            }
            None => {
                downstream.types.push(TypeState::new(variant, type_url.clone(), now));
                downstream.types.len() - 1
            }
        };
        let stream = matches!(self.upstream, Upstream::Open(_)).then_some(self.stream);
        let Some(state) = downstream.types.get_mut(index) else { return };
        let had_resources = state.had_resources;
        let (verdicts, forwarded) =
            state.request(request, stream, self.good.0.get(&type_url).map(AsRef::as_ref));
        if state.had_resources && !had_resources {
            state.from_cache = self.from_cache.remove(&type_url);
        }
        for verdict in verdicts {
            self.settle(now, index, verdict, effects);
        }
        if !self.limit_names(now, index, effects) {
            return self.disconnect_envoy(now, TOO_MANY_NAMES, effects);
        }
        for request in forwarded {
            self.send_upstream(now, request, effects);
        }
    }

    /// Applies what Envoy says about a response.
    fn settle(&mut self, now: Duration, index: usize, verdict: Verdict, effects: &mut Vec<Effect>) {
        let Some(state) = self.downstream.as_mut().and_then(|downstream| downstream.types.get_mut(index))
        else {
            return;
        };
        let type_url = state.type_url().to_owned();
        let counters = self.counters.entry(type_url.clone()).or_default();
        match verdict {
            Verdict::Ack(delivered) => {
                counters.acks += 1;
                self.accept(now, index, type_url, delivered, effects);
            }
            Verdict::Nack(delivered, text) => {
                state.reject(&delivered);
                counters.nacks += 1;
                let text: String = text.chars().take(TEXT_LIMIT).collect();
                let last = counters.last_nack.replace((text.clone(), now));
                // A control plane that repeats a rejected response must not fill the log.
                if last.is_none_or(|(last, _)| last != text) {
                    effects.push(Effect::Event(Event::Nack { type_url, text }));
                }
            }
            Verdict::Unknown(delivered) => state.reject(&delivered),
        }
    }

    fn accept(
        &mut self,
        now: Duration,
        index: usize,
        type_url: String,
        delivered: Delivered,
        effects: &mut Vec<Effect>,
    ) {
        let is_live = delivered.server.is_some();
        let is_cut = delivered.content.is_cut;
        let known_reason = self.not_stored_reason(&type_url);
        let is_known = self.not_stored.contains_key(&type_url);
        let Some(state) = self.downstream.as_mut().and_then(|downstream| downstream.types.get_mut(index))
        else {
            return;
        };
        // In state of the world, a response of these types replaces all resources, which may fit now.
        let reason = known_reason.filter(|_| !(is_known && state.receives_whole_sets()));
        if type_url == SECRET
            || is_cut
            || reason.is_some()
            || !is_live && !self.good.0.contains_key(&type_url)
        {
            // Neither on disk nor in memory.
            state.accept(delivered, &mut Default::default());
            if let Some(reason) = reason.or(is_cut.then_some(limits::RESOURCES)) {
                self.stop_storing(now, &type_url, reason, effects);
            }
            return;
        }
        let good = Arc::make_mut(self.good.0.entry(type_url.clone()).or_default());
        if !state.accept(delivered, good) {
            return;
        }
        if self.settings.max_age.is_none() {
            good.forget_contents();
        }
        if is_live {
            self.age.confirm(now);
        }
        match self.good.0.get(&type_url).and_then(|good| self.exceeded(good)) {
            Some(reason) => self.stop_storing(now, &type_url, reason, effects),
            None => {
                self.not_stored.remove(&type_url);
            }
        }
        self.storage.changed(now);
    }

    /// Sends a request, with the node if it is the first one on the stream.
    pub(super) fn send_upstream(&mut self, now: Duration, mut request: Request, effects: &mut Vec<Effect>) {
        let (Upstream::Open(open), Some(downstream)) = (&mut self.upstream, &self.downstream) else { return };
        if !open.is_introduced {
            open.is_introduced = true;
            open.introduced_at = now;
            // Protobuf merges a message that follows another one into it.
            request.node = Some([&*downstream.node, &*self.node.encode_identity()].concat().into());
        }
        open.is_listening |= request.type_url == LISTENER;
        effects.push(Effect::SendUpstream(request.encode(downstream.variant)));
        self.request_own(effects);
    }

    /// When Envoy must have acknowledged a response, if there are too many without.
    pub(super) fn ack_due(&self) -> Option<Duration> {
        if self.reads_upstream() {
            return None;
        }
        let types = &self.downstream.as_ref()?.types;
        let oldest =
            types.iter().filter_map(|state| state.in_flight.front()).map(|delivered| delivered.at).min();
        oldest.map(|at| at + ACK_TIMEOUT)
    }
}
