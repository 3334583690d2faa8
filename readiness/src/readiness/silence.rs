//! Whether Envoy hangs: neither its probe listener nor its admin interface has responded for a long
//! time.

use std::time::Duration;

/// Time between two requests to the probe listener that counts as silence at most. It is longer than
/// the poller's interval and timeout together. A longer time means that the agent itself did not
/// run, for example because its machine was suspended, which says nothing about Envoy.
const LONGEST_STEP: Duration = Duration::from_secs(8);
/// Shortest silence of an Envoy that has never been ready that counts as a hang: as long as the
/// startup probe of the shipped Pod template waits. A slow disk can delay a start for minutes.
const STARTUP: Duration = Duration::from_secs(600);

/// A period in which no request to Envoy got a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Silence {
    /// Time from the first unanswered request to the probe listener to the last one.
    lasted: Duration,
    /// Time of the last request to the probe listener; `None` if it was answered.
    last: Option<Duration>,
    /// True if a request to the admin interface got no response in this period.
    admin: bool,
    /// True if this Envoy process was ready before.
    was_ready: bool,
}

impl Silence {
    pub(super) fn data_path(&mut self, responded: bool, was_ready: bool, now: Duration) {
        if responded {
            *self = Self::default();
            return;
        }
        let step = self.last.map_or(Duration::ZERO, |last| now.saturating_sub(last));
        self.lasted += step.min(LONGEST_STEP);
        self.last = Some(now);
        self.was_ready = was_ready;
    }

    pub(super) fn admin(&mut self, responded: bool) {
        if responded {
            *self = Self::default();
        } else {
            self.admin = self.last.is_some();
        }
    }

    /// Returns true if the last request to the probe listener got no response.
    pub fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Returns true if Envoy has not responded on any channel for at least `limit`.
    pub fn is_hang(&self, limit: Duration) -> bool {
        let limit = if self.was_ready { limit } else { limit.max(STARTUP) };
        self.admin && self.lasted >= limit
    }
}
