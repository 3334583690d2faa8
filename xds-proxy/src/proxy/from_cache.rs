//! Serves the last good configuration while no control plane answers, and describes the state.

use std::time::Duration;

use super::types::{Effect, Event, ProxyView, TypeView};
use super::{Open, Proxy, Upstream};
use crate::type_state::{Delivered, TypeState};

impl Proxy {
    /// Returns the age of the last good configuration, if it may be served.
    fn servable_age(&self, now: Duration) -> Option<Duration> {
        let age = self.age.at(now)?;
        (age <= self.settings.max_age?).then_some(age)
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
        matches!(self.upstream, Upstream::Open(_)) || !self.is_outage
    }

    fn has_missing(&self, state: &TypeState) -> bool {
        let good = self.good.0.get(state.type_url());
        good.is_some_and(|good| state.has_missing(good))
    }

    pub(super) fn serve_from_cache(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let age = self.age.at(now);
        let servable = self.servable_age(now);
        let may_answer = self.may_answer();
        let Some(downstream) = &mut self.downstream else { return };
        for state in &mut downstream.types {
            let is_due = !may_answer || state.cache_after().is_some_and(|due| now >= due);
            let good = self.good.0.get(state.type_url()).filter(|_| is_due).map(AsRef::as_ref);
            let Some(good) = good.filter(|good| state.has_missing(good)) else { continue };
            let Some(age) = servable else {
                if let (Some(_), Some(age)) = (self.settings.max_age, age) {
                    effects.push(Effect::Event(Event::Expired { age }));
                }
                self.good.0.clear();
                self.storage.outdated();
                return;
            };
            let (type_url, content) = (state.type_url().to_owned(), state.missing(good));
            let message = content.encode(&type_url, downstream.variant);
            self.last_nonce += 1;
            let resources = content.resources.len();
            let size = message.len() + content.size();
            let version = content.version.clone();
            let delivered =
                Delivered { ours: self.last_nonce, server: None, version, content, size, at: now };
            let suffix = state.deliver(delivered, Some(good));
            state.from_cache = Some((age, now));
            self.counters.entry(type_url.clone()).or_default().from_cache += 1;
            effects.push(Effect::SendEnvoy(message, suffix));
            effects.push(Effect::Event(Event::ServedFromCache { type_url, resources, age }));
        }
    }

    /// Returns the age of the configuration that Envoy received from the cache; `None` if it received
    /// none, or the control plane has confirmed it since.
    pub fn stale(&self, now: Duration) -> Option<Duration> {
        let types = &self.downstream.as_ref()?.types;
        let ages = types.iter().filter(|state| state.is_subscribed()).filter_map(|state| state.from_cache);
        ages.map(|(age, at)| age.saturating_add(now.saturating_sub(at))).max()
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
            is_health_refused: matches!(self.upstream, Upstream::Open(Open { is_alone: false, .. }))
                && self.health.is_paused(now),
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
            resources: good.map_or(0, |good| good.len()),
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
