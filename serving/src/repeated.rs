//! Limits how often the same warning is logged.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum interval between two log lines about the same event.
const MINUTE: Duration = Duration::from_secs(60);

/// Rate limiter for a repeated warning: it is logged at most once a minute, with the number of
/// occurrences since the previous line.
#[derive(Debug, Default)]
pub struct Repeated {
    unlogged: u64,
    logged: Option<Instant>,
}

impl Repeated {
    /// Records an occurrence at `now`. `Some(n)` means that the warning is due and covers n
    /// occurrences.
    pub fn came(&mut self, now: Instant) -> Option<u64> {
        self.unlogged += 1;
        if self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < MINUTE) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests;
