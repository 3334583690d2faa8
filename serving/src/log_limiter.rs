//! Limits how often the same warning is logged.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum interval between two log lines about the same event.
const MINUTE: Duration = Duration::from_secs(60);

/// Rate limiter for a repeated warning: it is logged at most once a minute, with the number of
/// occurrences since the previous line.
#[derive(Debug, Default)]
pub struct LogLimiter {
    suppressed: u64,
    last_logged: Option<Instant>,
}

impl LogLimiter {
    /// Records an occurrence at `now`. `Some(n)` means that the warning is due and covers n
    /// occurrences.
    pub fn record(&mut self, now: Instant) -> Option<u64> {
        self.suppressed += 1;
        if self.last_logged.is_some_and(|last_logged| now.saturating_duration_since(last_logged) < MINUTE) {
            return None;
        }
        self.last_logged = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests;
