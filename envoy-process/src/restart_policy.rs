//! Decides whether Envoy is started again after an exit, and when.

use std::collections::VecDeque;
use std::time::Duration;

use pacing::Backoff;

/// The first and the largest upper bound of the pauses between restarts. An Envoy that ran for the
/// largest one resets them.
const FIRST_MAX_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Selects what follows an unexpected exit of Envoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartMode {
    /// The agent exits too.
    Never,
    /// The agent starts Envoy again, but exits if Envoy was started again `limit` times within
    /// `window` before.
    Limited { limit: usize, window: Duration },
    /// The agent starts Envoy again.
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Start Envoy after this pause.
    Restart(Duration),
    /// Exit; this many restarts preceded within the window.
    GiveUp(usize),
}

#[derive(Debug)]
pub struct RestartPolicy {
    mode: RestartMode,
    backoff: Backoff,
    /// Times of the last restarts, in ascending order; at most `limit`.
    restarts: VecDeque<Duration>,
}

impl RestartPolicy {
    pub fn new(mode: RestartMode) -> Self {
        Self { mode, backoff: Backoff::new(FIRST_MAX_PAUSE, LONGEST_PAUSE), restarts: VecDeque::new() }
    }

    /// Decides after an exit at `now` of an Envoy that ran for `run_time`; `random`, in 0..=1,
    /// selects the pause.
    pub fn after_exit(&mut self, run_time: Duration, now: Duration, random: f64) -> Decision {
        match self.mode {
            RestartMode::Never => return Decision::GiveUp(0),
            RestartMode::Limited { limit, window } => {
                self.restarts.retain(|at| now.saturating_sub(*at) < window);
                if self.restarts.len() >= limit {
                    return Decision::GiveUp(self.restarts.len());
                }
                self.restarts.push_back(now);
            }
            RestartMode::Always => {}
        }
        self.backoff.reset_after(run_time);
        Decision::Restart(self.backoff.next_with_jitter(Duration::ZERO, random))
    }
}

#[cfg(test)]
mod tests;
