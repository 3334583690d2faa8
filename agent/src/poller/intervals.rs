//! The intervals and the timeouts of the readiness requests to Envoy.

use std::time::Duration;

use crate::envoy::admin::{AdminQuestion, Failure};

/// Interval while a condition is pending, so that readiness is detected quickly.
const EAGER: Duration = Duration::from_millis(20);
/// Time after which [`PATIENT`] replaces [`EAGER`].
const EAGER_FOR: Duration = Duration::from_secs(10);
/// Interval for a condition that has been pending for longer than [`EAGER_FOR`].
const PATIENT: Duration = Duration::from_millis(250);
/// First interval of statistics requests, which load Envoy's main thread; it doubles up to
/// [`STATS_LONGEST`].
const STATS_FIRST: Duration = Duration::from_millis(100);
const STATS_LONGEST: Duration = Duration::from_secs(1);
/// Interval of `/server_info` for a ready Envoy, to detect a drain, another version or a restart.
const SERVER_INFO: Duration = Duration::from_secs(15);
/// Interval of `/server_info` if the data path is not checked, so that nothing else detects an exit
/// of Envoy.
const SERVER_INFO_ALONE: Duration = Duration::from_secs(1);
/// Maximum timeout of an admin request.
const ADMIN_DEADLINE: Duration = Duration::from_secs(30);
/// Interval of data path requests to a ready Envoy.
const DATA_PATH_MET: Duration = Duration::from_secs(5);
/// Interval of data path requests after a failure.
const DATA_PATH_FAILED: Duration = Duration::from_secs(1);
/// Interval of data path requests to an external Envoy, whose exit is not observed otherwise.
const DATA_PATH_WATCH: Duration = Duration::from_millis(500);
/// Timeout of a data path request.
const DATA_PATH_DEADLINE: Duration = Duration::from_secs(1);
/// Pause after a refused connection; a second refusal counts as an exit of Envoy.
const REFUSED: Duration = Duration::from_millis(100);

fn eager(stage: Duration) -> Duration {
    if stage < EAGER_FOR { EAGER } else { PATIENT }
}

/// Pacing of admin requests.
#[derive(Debug)]
pub(super) struct AdminPace {
    first_deadline: Duration,
    /// True if nothing else detects an exit of Envoy.
    alone: bool,
    deadline: Duration,
    /// Current request, the process that it refers to, and the time of the first such request.
    stage: Option<(AdminQuestion, (u32, bool), Duration)>,
    stats_pause: Duration,
}

impl AdminPace {
    /// `first_deadline` is the timeout of a request until one times out; `alone` means that nothing
    /// else detects an exit of Envoy.
    pub(super) fn new(first_deadline: Duration, alone: bool) -> Self {
        Self { first_deadline, alone, deadline: first_deadline, stage: None, stats_pause: STATS_FIRST }
    }

    /// Returns the timeout of `question`, sent at `now` to the process that `life` identifies.
    pub(super) fn deadline(&mut self, question: AdminQuestion, life: (u32, bool), now: Duration) -> Duration {
        let goes_on = self.stage.is_some_and(|(asked, of, _)| (asked, of) == (question, life));
        if !goes_on {
            self.stage = Some((question, life, now));
            self.deadline = self.first_deadline;
            self.stats_pause = STATS_FIRST;
        }
        self.deadline
    }

    /// Returns the pause after a request if the next one is the same; `failure` is the result of
    /// the request.
    pub(super) fn pause(&mut self, failure: Option<Failure>, now: Duration) -> Duration {
        self.deadline = match failure {
            Some(Failure::Timeout) => (self.deadline * 2).min(ADMIN_DEADLINE),
            _ => self.first_deadline,
        };
        match self.stage {
            Some((AdminQuestion::Stats, ..)) => {
                let pause = self.stats_pause;
                self.stats_pause = (pause * 2).min(STATS_LONGEST);
                pause
            }
            Some((AdminQuestion::ServerInfo, ..)) if failure == Some(Failure::Refused) => REFUSED,
            Some((AdminQuestion::ServerInfo, ..)) if self.alone => SERVER_INFO_ALONE,
            Some((AdminQuestion::ServerInfo, ..)) => SERVER_INFO,
            Some((AdminQuestion::Ready, _, since)) => eager(now.saturating_sub(since)),
            None => EAGER,
        }
    }
}

/// Pacing of data path requests.
#[derive(Debug)]
pub(super) struct DataPathPace {
    /// True if Envoy is a child process, whose exit is observed directly.
    child: bool,
    /// The process for which the data path is pending, and since when.
    pending: Option<((u32, bool), Duration)>,
}

impl DataPathPace {
    /// `child` means that Envoy is a child process, whose exit is observed directly.
    pub(super) fn new(child: bool) -> Self {
        Self { child, pending: None }
    }

    /// Returns the timeout of every request.
    pub(super) fn deadline(&self) -> Duration {
        DATA_PATH_DEADLINE
    }

    /// Returns the pause after a request. `pending` means that readiness waits for the data path of
    /// the process that `life` identifies, `failure` that the request got no response, and
    /// `failing` that it got no response with an expected status.
    pub(super) fn pause(
        &mut self,
        pending: bool,
        life: (u32, bool),
        failure: Option<Failure>,
        failing: bool,
        now: Duration,
    ) -> Duration {
        if !pending {
            self.pending = None;
            return match failure {
                _ if self.child && failing => DATA_PATH_FAILED,
                _ if self.child => DATA_PATH_MET,
                Some(Failure::Refused) => REFUSED,
                _ => DATA_PATH_WATCH,
            };
        }
        let since = match self.pending {
            Some((of, since)) if of == life => since,
            _ => now,
        };
        self.pending = Some((life, since));
        eager(now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests;
