//! Detects whether the peer of a stream reads what is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Records for how long data has been waiting to be written to the connection.
#[derive(Clone, Debug)]
pub struct Flow {
    start: Instant,
    waiting: Arc<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Bytes of messages that the body has received and the connection has not accepted.
    bytes: AtomicUsize,
    /// Milliseconds from the start until there were such bytes, or until the last frame was written.
    since: AtomicU64,
}

impl Default for Flow {
    fn default() -> Self {
        Self { start: Instant::now(), waiting: Arc::default() }
    }
}

impl Flow {
    /// Returns for how long the peer has not read the data that was sent; `None` if nothing is
    /// waiting.
    pub fn blocked(&self) -> Option<Duration> {
        // In this order: `since` is written before the bytes that it belongs to are counted.
        let is_waiting = self.waiting.bytes.load(Ordering::Acquire) > 0;
        let since = Duration::from_millis(self.waiting.since.load(Ordering::Acquire));
        is_waiting.then(|| self.start.elapsed().saturating_sub(since))
    }

    fn restart(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.waiting.since.fetch_max(now, Ordering::AcqRel);
    }

    /// Counts bytes of a message that the body has received.
    pub(super) fn received(&self, bytes: usize) {
        if self.waiting.bytes.load(Ordering::Acquire) == 0 {
            self.restart();
        }
        self.waiting.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Counts bytes that wait no longer.
    pub(super) fn written(&self, bytes: usize) {
        self.restart();
        self.waiting.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}
