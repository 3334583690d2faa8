//! Serves the last good configuration while no control plane answers, and describes the state.

use std::time::Duration;

use super::types::{Effect, Event, ProxyView, TypeView};
use super::{Open, Proxy, UNCHANGED_AFTER, Upstream};
use crate::type_state::{Delivered, TypeState};
use crate::wire::{Response, Variant};

impl Proxy {
    /// Returns the age of the last good configuration, if it may be served.
    fn servable_age(&self, now: Duration) -> Option<Duration> {
        let age = self.age.at(now)?;
        (age <= self.settings.max_age?).then_some(age)
    }

    fn is_open(&self) -> bool {
        matches!(self.upstream, Upstream::Open(_))
    }

    /// When a type is served from the cache although a control plane may still answer.
    pub(super) fn cache_due(&self) -> Option<Duration> {
        self.settings.max_age?;
        if !self.may_answer() {
            return None;
        }
        let types = &self.downstream.as_ref()?.types;
        types.iter().filter(|state| self.has_missing(state)).filter_map(TypeState::cache_after).min()
    }

    /// Returns true if a control plane may still answer. Otherwise the cache is used at once.
    fn may_answer(&self) -> bool {
        self.is_open() || !self.is_outage
    }

    fn has_missing(&self, state: &TypeState) -> bool {
        let good = self.good.0.get(state.type_url());
        good.is_some_and(|good| state.missing(good).is_some())
    }

    pub(super) fn serve_from_cache(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let age = self.age.at(now);
        let servable = self.servable_age(now);
        let (is_open, may_answer) = (self.is_open(), self.may_answer());
        let Some(downstream) = &mut self.downstream else { return };
        let mut is_unknown_upstream = false;
        for state in &mut downstream.types {
            let is_due = !may_answer || state.cache_after().is_some_and(|due| now >= due);
            let good = self.good.0.get(state.type_url()).filter(|_| is_due);
            let Some(content) = good.and_then(|good| state.missing(good)) else { continue };
            let Some(age) = servable else {
                if let (Some(_), Some(age)) = (self.settings.max_age, age) {
                    effects.push(Effect::Event(Event::Expired { age }));
                }
                self.good.0.clear();
                self.storage.outdated();
                return;
            };
            let type_url = state.type_url().to_owned();
            let message = content.encode(&type_url, downstream.variant);
            self.last_nonce += 1;
            let resources = content.resources.len();
            let size = message.len() + content.size();
            state.deliver(Delivered { ours: self.last_nonce, server: None, content, size, at: now });
            state.from_cache = Some((age, now));
            is_unknown_upstream |=
                downstream.variant == Variant::Delta && is_open && state.is_requested_on(self.stream);
            self.counters.entry(type_url.clone()).or_default().from_cache += 1;
            effects.push(Effect::SendEnvoy(message, Response::nonce_suffix(&self.last_nonce.to_string())));
            effects.push(Effect::Event(Event::ServedFromCache { type_url, resources, age }));
        }
        if is_unknown_upstream {
            // The incremental variant has no other way to tell the control plane what Envoy holds. Without
            // it, a resource that it has removed meanwhile would stay.
            self.reopen_upstream(now, "reopened with the versions of the last good configuration", effects);
        }
    }

    /// Returns the age of the configuration that Envoy received from the cache; `None` if it received
    /// none, or the control plane has confirmed it since.
    pub fn stale(&self, now: Duration) -> Option<Duration> {
        let types = &self.downstream.as_ref()?.types;
        let ages = types.iter().filter(|state| state.is_subscribed()).filter_map(|state| state.from_cache);
        ages.map(|(age, at)| age.saturating_add(now.saturating_sub(at))).max()
    }

    /// When the types that the control plane has not answered count as unchanged.
    pub(super) fn unchanged_due(&self) -> Option<Duration> {
        let Upstream::Open(open @ Open { is_answered: true, .. }) = self.upstream else { return None };
        let mut types = self.downstream.as_ref()?.types.iter();
        types.any(|state| state.awaits_confirmation(open.since)).then_some(open.since + UNCHANGED_AFTER)
    }

    pub(super) fn confirm_unchanged(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let was_stale = self.stale(now).is_some();
        let (Upstream::Open(open), Some(downstream)) = (self.upstream, &mut self.downstream) else { return };
        for state in downstream.types.iter_mut().filter(|state| state.awaits_confirmation(open.since)) {
            state.from_cache = None;
        }
        if was_stale && self.stale(now).is_none() {
            effects.push(Effect::Event(Event::NoLongerStale));
        }
    }

    /// Returns the time since a control plane confirmed the last good configuration.
    pub(super) fn good_age(&self, now: Duration) -> Option<Duration> {
        match self.upstream {
            Upstream::Open(open) if open.is_answered => Some(Duration::ZERO),
            _ => self.age.at(now),
        }
    }

    /// Describes the state for operators.
    pub fn view(&self, now: Duration) -> ProxyView {
        let connected = match self.upstream {
            Upstream::Open(open) => Some(now.saturating_sub(open.since)),
            _ => None,
        };
        let types = self.downstream.as_ref().map_or(&[][..], |downstream| &downstream.types);
        ProxyView {
            envoy: self.downstream.as_ref().map(|downstream| downstream.variant),
            connected,
            streams: self.stream,
            error: self.error.clone(),
            age: self.good_age(now),
            stale: self.stale(now),
            not_subscribed: self.not_subscribed,
            not_stored: types
                .iter()
                .filter(|state| self.not_stored_reason(state.type_url()).is_some())
                .count(),
            store_error: self.storage.error().map(str::to_owned),
            types: types.iter().map(|state| self.type_view(state, now)).collect(),
        }
    }

    fn type_view(&self, state: &TypeState, now: Duration) -> TypeView {
        let since = |at: Duration| now.saturating_sub(at);
        let good = self.good.0.get(state.type_url());
        let counters = self.counters.get(state.type_url()).cloned().unwrap_or_default();
        TypeView {
            type_url: state.type_url().to_owned(),
            names: state.names(),
            version: good.map_or_else(|| state.version().to_owned(), |good| good.version.clone()),
            resources: good.map_or(0, |good| good.resources().len()),
            size: good.map_or(0, |good| good.size()),
            not_stored: self.not_stored_reason(state.type_url()),
            in_flight: state.in_flight.len(),
            is_stale: state.from_cache.is_some(),
            responses: counters.responses,
            bytes: counters.bytes,
            acks: counters.acks,
            nacks: counters.nacks,
            unchanged: counters.unchanged,
            from_cache: counters.from_cache,
            last_nack: counters.last_nack.map(|(text, at)| (text, since(at))),
            last_response: counters.last_response.map(since),
        }
    }
}
