//! Limits the log lines that one client can cause. Texts in them are short, so a line has less than 1 KiB.

use std::time::Duration;

use pacing::source::Source;
use pacing::{RateLimiter, SourceMap};

/// A source may cause one line per interval after a burst.
const INTERVAL: Duration = Duration::from_secs(4);
const BURST: u32 = 16;

/// The lines of each source. Times are durations since an arbitrary start.
#[derive(Debug, Default)]
pub struct LogBudget(SourceMap<Source, Lines>);

#[derive(Debug)]
struct Lines {
    rate: RateLimiter,
    suppressed: u64,
}

impl LogBudget {
    /// Returns how many lines were suppressed before this one, or `None` if it must be suppressed too.
    pub fn take(&mut self, source: Source, now: Duration) -> Option<u64> {
        let new = Lines { rate: RateLimiter::new(INTERVAL, BURST), suppressed: 0 };
        let lines = self.0.get_or_insert(source, now, |lines| Some(lines.rate.full_at()), new);
        if lines.rate.take(now).is_ok() {
            return Some(std::mem::take(&mut lines.suppressed));
        }
        lines.suppressed += 1;
        None
    }
}

#[cfg(test)]
mod tests;
