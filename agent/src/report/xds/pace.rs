//! Rate limit for messages from the server. Excess messages wait in the connection, so that no
//! server can cause unlimited probing, logging or CPU use.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Number of messages that may arrive at once.
const BURST: u32 = 50;
/// One message per interval after a burst. An app-health server sends acknowledgements and probe
/// changes, a few per minute.
const INTERVAL: Duration = Duration::from_millis(100);

/// Rate limiter of one stream, a leaky bucket.
#[derive(Debug)]
pub(super) struct Pace {
    /// The time at which all messages so far would have arrived at one per interval.
    level: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { level: Instant::now() }
    }

    /// Waits until one more message may be read.
    pub(super) async fn pass(&mut self) {
        let now = Instant::now();
        self.level = self.level.max(now) + INTERVAL;
        let ahead = self.level - now;
        sleep(ahead.saturating_sub(INTERVAL * BURST)).await;
    }
}

#[cfg(test)]
mod tests;
