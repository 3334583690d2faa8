//! Limits of what the proxy keeps. What exceeds them is still passed on.

use std::sync::Arc;
use std::time::Duration;

use xds::ITEM_LIMIT;
use xds::type_url::SECRET;

use super::types::{Effect, Event};
use super::{Proxy, TYPE_LIMIT};
use crate::last_good::GoodType;
use crate::type_state::TypeState;

/// Maximum size of the stored resources of one type, and of all types, in bytes.
pub(super) const TYPE_SIZE: usize = 48 << 20;
pub(super) const TOTAL_SIZE: usize = 64 << 20;
/// Maximum size of all names of Envoy's stream in memory, in bytes.
pub(super) const NAMES_SIZE: usize = 32 << 20;

pub(super) const RESOURCES: &str = "more than 100,000 resources";
const TYPE: &str = "more than 48 MiB";
const TOTAL: &str = "all types together have more than 64 MiB";
const NAMES: &str = "more than 32 MiB of names";
const TYPES: &str = "more than 64 types";

impl Proxy {
    /// Returns why a type is not stored.
    pub(super) fn not_stored_reason(&self, type_url: &str) -> Option<&'static str> {
        let is_known = self.good.0.contains_key(type_url);
        let is_full = self.good.0.len() + self.not_stored.len() >= TYPE_LIMIT;
        match self.not_stored.get(type_url) {
            Some(reason) => Some(reason),
            None => (!is_known && is_full && type_url != SECRET).then_some(TYPES),
        }
    }

    /// Removes a type from the stored ones. The reason is logged once per type.
    pub(super) fn stop_storing(
        &mut self,
        now: Duration,
        type_url: &str,
        reason: &'static str,
        effects: &mut Vec<Effect>,
    ) {
        if type_url == SECRET {
            return;
        }
        if self.good.0.remove(type_url).is_some() {
            self.storage.changed(now);
        }
        if self.good.0.len() + self.not_stored.len() < TYPE_LIMIT {
            self.not_stored.insert(type_url.to_owned(), reason);
        }
        let counters = self.counters.entry(type_url.to_owned()).or_default();
        if !std::mem::replace(&mut counters.is_limit_logged, true) {
            effects.push(Effect::Event(Event::NotStored { type_url: type_url.to_owned(), reason }));
        }
    }

    /// Returns why the resources of a type exceed the limits.
    pub(super) fn exceeded(&self, good: &Arc<GoodType>) -> Option<&'static str> {
        match () {
            () if good.len() > ITEM_LIMIT => Some(RESOURCES),
            () if good.size() > TYPE_SIZE => Some(TYPE),
            () if self.good.size() > TOTAL_SIZE => Some(TOTAL),
            () => None,
        }
    }

    /// Forgets what Envoy holds of a type if there are too many names. Returns false if Envoy subscribes
    /// to too many itself.
    pub(super) fn limit_names(&mut self, now: Duration, index: usize, effects: &mut Vec<Effect>) -> bool {
        let Some(downstream) = &mut self.downstream else { return true };
        let types = &mut downstream.types;
        let is_too_large =
            |types: &[TypeState]| types.iter().map(TypeState::names_size).sum::<usize>() > NAMES_SIZE;
        let has_too_many = types.get(index).is_some_and(TypeState::has_too_many_names);
        if !has_too_many && !is_too_large(types) {
            return true;
        }
        let state = if has_too_many {
            types.get_mut(index).filter(|state| !state.is_untracked())
        } else {
            types.iter_mut().filter(|state| !state.is_untracked()).max_by_key(|state| state.names_size())
        };
        let Some(state) = state else { return false };
        state.untrack();
        let (has_still, type_url) = (state.has_too_many_names(), state.type_url().to_owned());
        let is_within = !has_still && !is_too_large(types);
        self.stop_storing(now, &type_url, if has_too_many { RESOURCES } else { NAMES }, effects);
        is_within
    }
}
