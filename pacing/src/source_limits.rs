//! Limits the number of open connections or streams of each source, and the rate of an event.

use std::time::Duration;

use crate::{RateLimiter, SourceMap};

/// The number of open connections or streams of each source `K`, and the rate of an event. Times are
/// durations since an arbitrary start.
#[derive(Debug)]
pub struct SourceLimits<K> {
    open: u32,
    rate: RateLimiter,
    sources: SourceMap<K, SourceState>,
}

#[derive(Debug)]
struct SourceState {
    open: u32,
    rate: RateLimiter,
}

/// The limit that a source has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    Open,
    Rate,
}

impl<K: Clone + Ord> SourceLimits<K> {
    /// A source may have `open` things open. Each source gets a copy of `rate`, a full bucket.
    pub fn new(open: u32, rate: RateLimiter) -> Self {
        Self { open, rate, sources: SourceMap::default() }
    }

    /// Counts one more as open until [`Self::close`] is called. It requires a token, but takes none.
    pub fn open(&mut self, source: &K, now: Duration) -> Result<(), Exceeded> {
        let limit = self.open;
        let state = self.state(source, now);
        if state.open >= limit {
            return Err(Exceeded::Open);
        }
        // A copy keeps the token.
        { state.rate }.take(now).map_err(|_| Exceeded::Rate)?;
        state.open += 1;
        Ok(())
    }

    /// Counts an event of the source, such as a failed handshake, against its rate.
    pub fn take(&mut self, source: &K, now: Duration) -> Result<(), Exceeded> {
        self.take_many(source, 1, now)
    }

    /// Like [`Self::take`], for several events at once. More than the bucket holds always exceed the rate.
    pub fn take_many(&mut self, source: &K, events: u32, now: Duration) -> Result<(), Exceeded> {
        self.state(source, now).rate.take_many(events, now).map_err(|_| Exceeded::Rate)
    }

    /// Counts one less as open.
    pub fn close(&mut self, source: &K) {
        if let Some(state) = self.sources.get_mut(source) {
            state.open = state.open.saturating_sub(1);
        }
    }

    fn state(&mut self, source: &K, now: Duration) -> &mut SourceState {
        let expires = |state: &SourceState| (state.open == 0).then(|| state.rate.full_at());
        let new = SourceState { open: 0, rate: self.rate };
        self.sources.get_or_insert(source.clone(), now, expires, new)
    }
}

#[cfg(test)]
mod tests;
