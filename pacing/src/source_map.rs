//! A map of bounded size: any number of sources may connect, and each has a state.

use std::collections::BTreeMap;
use std::time::Duration;

/// Number of states that are kept when states are removed, besides those in use. Other limits apply
/// to what uses a state.
const MAX_SOURCES: usize = 1024;

/// The states `V` of sources `K`. Times are durations since an arbitrary start.
#[derive(Debug)]
pub struct SourceMap<K, V> {
    states: BTreeMap<K, V>,
    /// Number of states at which states are removed. It increases with the states in use, so that not
    /// every new source costs a pass over all of them.
    prune_at: usize,
}

impl<K, V> Default for SourceMap<K, V> {
    fn default() -> Self {
        Self { states: BTreeMap::new(), prune_at: MAX_SOURCES }
    }
}

impl<K: Ord, V> SourceMap<K, V> {
    /// Returns the state of a source, if there is one.
    pub fn get_mut(&mut self, source: &K) -> Option<&mut V> {
        self.states.get_mut(source)
    }

    /// Returns the state of a source, which is `new` if there was none. If there are many, those that
    /// have expired are removed, and then those that expire first. `expires` returns when a new state
    /// does the same; `None` means that the state is in use.
    pub fn get_or_insert(
        &mut self,
        source: K,
        now: Duration,
        expires: impl Fn(&V) -> Option<Duration>,
        new: V,
    ) -> &mut V {
        if self.states.len() >= self.prune_at && !self.states.contains_key(&source) {
            let mut expiries: Vec<Duration> = self.states.values().filter_map(&expires).collect();
            expiries.sort_unstable_by(|first, second| second.cmp(first));
            let last = expiries.get(MAX_SOURCES).map_or(now, |expiry| now.max(*expiry));
            self.states.retain(|_, state| expires(state).is_none_or(|expiry| expiry > last));
            self.prune_at = self.states.len() + MAX_SOURCES;
        }
        self.states.entry(source).or_insert(new)
    }
}

#[cfg(test)]
mod tests;
