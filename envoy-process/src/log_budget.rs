//! Limits the warnings and errors of Envoy that the agent passes on, since clients can cause some of
//! them, with text of theirs.

use std::time::Duration;

/// Time in which one byte is added to the budget: 32 KiB per minute.
const INTERVAL: Duration = Duration::from_nanos(60_000_000_000 / (32 * 1024));
/// Time in which an empty budget becomes full, with 32 KiB.
const FULL: Duration = Duration::from_secs(60);

/// A token bucket of bytes. In any minute it admits at most 64 KiB.
#[derive(Debug, Default)]
pub(super) struct LogBudget {
    /// When the budget is full, since an arbitrary start.
    full_at: Duration,
}

impl LogBudget {
    /// Returns true if a line of `length` bytes may be written at `now`.
    pub(super) fn admit(&mut self, length: usize, now: Duration) -> bool {
        let cost = INTERVAL.saturating_mul(u32::try_from(length).unwrap_or(u32::MAX));
        let full_at = self.full_at.max(now).saturating_add(cost);
        let is_admitted = full_at.saturating_sub(now) <= FULL;
        if is_admitted {
            self.full_at = full_at;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_64_kib_in_a_minute() {
        let mut budget = LogBudget::default();
        for minute in 0..3 {
            let mut admitted = 0;
            for step in 0..60_000 {
                let now = FULL * minute + Duration::from_millis(step);
                admitted += if budget.admit(100, now) { 100 } else { 0 };
            }
            let expected = if minute == 0 { 65_000..=65_540 } else { 32_600..=32_900 };
            assert!(expected.contains(&admitted), "{minute}: {admitted}");
        }
    }

    #[test]
    fn a_quiet_hour_saves_no_more_than_the_burst() {
        let mut budget = LogBudget::default();
        let hour = FULL * 60;
        assert!(budget.admit(32 * 1024, hour) && !budget.admit(1, hour));
        assert!(!budget.admit(usize::MAX, hour * 2) && budget.admit(1, hour * 2));
    }
}
