//! Limits the TLS handshakes of each source, before the first byte is read, so that clients without
//! a certificate do not delay the agents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pacing::RateLimiter;
use serving::source::Source;
use tokio::time::Instant;

/// Maximum number of concurrent handshakes of one source. Many agents behind one address reconnect
/// in turn, because a handshake takes some milliseconds.
const IN_PROGRESS: u32 = 32;
/// After this many failed handshakes, a source may fail once per interval.
const FAILURES: u32 = 32;
const FAILURE_INTERVAL: Duration = Duration::from_millis(100);
/// Number of sources kept in memory before those without a recent handshake are removed.
const MAX_SOURCES: usize = 1024;

#[derive(Debug)]
pub(super) struct Handshakes {
    start: Instant,
    sources: Mutex<HashMap<Source, SourceState>>,
}

#[derive(Debug)]
struct SourceState {
    in_progress: u32,
    failures: RateLimiter,
}

/// A handshake in progress. It counts as failed unless [`Handshake::succeeded`] is called.
#[derive(Debug)]
pub(super) struct Handshake {
    handshakes: Arc<Handshakes>,
    source: Source,
    failed: bool,
}

impl Handshakes {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), sources: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Source, SourceState>> {
        self.sources.lock().expect("nothing panics while it holds this lock")
    }

    /// Returns `None` if the source has reached a limit.
    pub(super) fn begin(self: &Arc<Self>, source: Source) -> Option<Handshake> {
        let (now, mut sources) = (self.start.elapsed(), self.lock());
        if sources.len() >= MAX_SOURCES && !sources.contains_key(&source) {
            sources.retain(|_, state| state.in_progress > 0 || !state.failures.is_full(now));
        }
        let new = || SourceState { in_progress: 0, failures: RateLimiter::new(FAILURE_INTERVAL, FAILURES) };
        let state = sources.entry(source).or_insert_with(new);
        // A copy, because only a failure takes a token.
        let may_fail = { state.failures }.take(now).is_ok();
        if state.in_progress >= IN_PROGRESS || !may_fail {
            return None;
        }
        state.in_progress += 1;
        Some(Handshake { handshakes: self.clone(), source, failed: true })
    }
}

impl Handshake {
    pub(super) fn succeeded(mut self) {
        self.failed = false;
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let now = self.handshakes.start.elapsed();
        if let Some(state) = self.handshakes.lock().get_mut(&self.source) {
            state.in_progress -= 1;
            if self.failed {
                // The last ones in progress may exceed the rate.
                let _ = state.failures.take(now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
