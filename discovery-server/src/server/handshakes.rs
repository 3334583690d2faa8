//! Limits the TLS handshakes of each source, before the first byte is read, so that clients without
//! a certificate do not delay the agents. A handshake lasts until the first stream of its connection, so
//! that clients that open none do not delay them either.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pacing::source::Source;
use pacing::{RateLimiter, SourceLimits};
use tokio::time::Instant;

/// Maximum number of concurrent handshakes of one source. Many agents behind one address reconnect
/// in turn, because a handshake takes some milliseconds, and the first stream follows at once.
const IN_PROGRESS: u32 = 32;
/// After this many failed handshakes, a source may fail once per interval.
const FAILURES: u32 = 32;
const FAILURE_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Handshakes {
    start: Instant,
    /// A token is a failure.
    sources: Mutex<SourceLimits<Source>>,
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
        let failures = RateLimiter::new(FAILURE_INTERVAL, FAILURES);
        let sources = Mutex::new(SourceLimits::new(IN_PROGRESS, failures));
        Arc::new(Self { start: Instant::now(), sources })
    }

    fn lock(&self) -> MutexGuard<'_, SourceLimits<Source>> {
        self.sources.lock().expect("nothing panics while it holds this lock")
    }

    /// Returns `None` if the source has reached a limit.
    pub(super) fn begin(self: &Arc<Self>, source: Source) -> Option<Handshake> {
        self.lock().open(&source, self.start.elapsed()).ok()?;
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
        let mut sources = self.handshakes.lock();
        if self.failed {
            // The last ones in progress may exceed the rate.
            let _ = sources.take(&self.source, self.handshakes.start.elapsed());
        }
        sources.close(&self.source);
    }
}

#[cfg(test)]
mod tests;
