//! How fast a server may talk: what comes too fast waits in the connection, so that no server makes this machine work, probe or log
//! without end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// So many messages at once ...
const BURST: u32 = 50;
/// ... and then one in this time. Ours are acknowledgements and changes of the probe, a few a minute.
const INTERVAL: Duration = Duration::from_millis(100);

/// The messages of one stream.
#[derive(Debug)]
pub(super) struct Pace {
    /// When all that came would have come at one per interval.
    level: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { level: Instant::now() }
    }

    /// Returns once one more message may be read.
    pub(super) async fn pass(&mut self) {
        let now = Instant::now();
        self.level = self.level.max(now) + INTERVAL;
        let ahead = self.level - now;
        sleep(ahead.saturating_sub(INTERVAL * BURST)).await;
    }
}

#[cfg(test)]
mod tests;
