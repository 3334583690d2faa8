//! The intervals and the timeouts of the readiness requests to Envoy.

use std::time::Duration;

use address::RequestFailure;
use readiness::admin::AdminRequest;

/// Interval while a condition is pending, so that readiness is detected quickly.
const FAST_INTERVAL: Duration = Duration::from_millis(20);
/// Time after which [`SLOW_INTERVAL`] replaces [`FAST_INTERVAL`].
const FAST_FOR: Duration = Duration::from_secs(10);
/// Interval for a condition that has been pending for longer than [`FAST_FOR`].
const SLOW_INTERVAL: Duration = Duration::from_millis(250);
/// First interval of statistics requests, which load Envoy's main thread; it doubles up to
/// [`LONGEST_STATS_INTERVAL`].
const FIRST_STATS_INTERVAL: Duration = Duration::from_millis(100);
const LONGEST_STATS_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of `/server_info` for a ready Envoy, to detect a drain, another version or a restart, and of `/ready`
/// for a child process, to detect a drain.
const STATE_INTERVAL: Duration = Duration::from_secs(15);
/// The same if the data path is not checked, so that nothing else detects an exit
/// of Envoy.
const STATE_ONLY_DETECTOR: Duration = Duration::from_secs(1);
/// The same while the probe listener does not respond, to tell whether Envoy hangs.
const STATE_IN_SILENCE: Duration = Duration::from_secs(1);
const MAX_ADMIN_TIMEOUT: Duration = Duration::from_secs(30);
const DATA_PATH_INTERVAL: Duration = Duration::from_secs(5);
const DATA_PATH_FAILED_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of data path requests to an external Envoy, whose exit is not observed otherwise.
const DATA_PATH_EXTERNAL_INTERVAL: Duration = Duration::from_millis(500);
pub(super) const DATA_PATH_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause after a refused connection; a second refusal counts as an exit of Envoy.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

fn pending_interval(stage: Duration) -> Duration {
    if stage < FAST_FOR { FAST_INTERVAL } else { SLOW_INTERVAL }
}

#[derive(Debug)]
pub(super) struct AdminIntervals {
    first_timeout: Duration,
    only_exit_detector: bool,
    timeout: Duration,
    /// Current request, the process that it refers to, and the time of the first such request.
    stage: Option<(AdminRequest, (u32, bool), Duration)>,
    stats_interval: Duration,
}

impl AdminIntervals {
    /// `first_timeout` is the timeout of a request until one times out; `only_exit_detector`
    /// means that nothing else detects an exit of Envoy.
    pub(super) fn new(first_timeout: Duration, only_exit_detector: bool) -> Self {
        Self {
            first_timeout,
            only_exit_detector,
            timeout: first_timeout,
            stage: None,
            stats_interval: FIRST_STATS_INTERVAL,
        }
    }

    /// Returns the timeout of `request`, sent at `now` to the process that `process` identifies.
    pub(super) fn timeout(&mut self, request: AdminRequest, process: (u32, bool), now: Duration) -> Duration {
        let is_same = self.stage.is_some_and(|(asked, of, _)| (asked, of) == (request, process));
        if !is_same {
            self.stage = Some((request, process, now));
            self.timeout = self.first_timeout;
            self.stats_interval = FIRST_STATS_INTERVAL;
        }
        self.timeout
    }

    /// Returns the pause after a request if the next one is the same; `failure` is the result of
    /// the request, and `in_silence` means that the probe listener does not respond.
    pub(super) fn pause(
        &mut self,
        failure: Option<RequestFailure>,
        in_silence: bool,
        now: Duration,
    ) -> Duration {
        self.timeout = match failure {
            Some(RequestFailure::Timeout) => (self.timeout * 2).min(MAX_ADMIN_TIMEOUT),
            _ => self.first_timeout,
        };
        let Some((request, _, since)) = self.stage else { return FAST_INTERVAL };
        match request {
            AdminRequest::Ready => pending_interval(now.saturating_sub(since)),
            AdminRequest::Stats => {
                let pause = self.stats_interval;
                self.stats_interval = (pause * 2).min(LONGEST_STATS_INTERVAL);
                pause
            }
            AdminRequest::ServerInfo | AdminRequest::State => match () {
                () if failure == Some(RequestFailure::Refused) => REFUSED_PAUSE,
                () if self.only_exit_detector => STATE_ONLY_DETECTOR,
                () if in_silence => STATE_IN_SILENCE,
                () => STATE_INTERVAL,
            },
        }
    }
}

#[derive(Debug)]
pub(super) struct DataPathIntervals {
    child: bool,
    /// The process for which the data path is pending, and since when.
    pending: Option<((u32, bool), Duration)>,
}

impl DataPathIntervals {
    /// `child` means that Envoy is a child process, whose exit is observed directly.
    pub(super) fn new(child: bool) -> Self {
        Self { child, pending: None }
    }

    /// Returns the pause after a request. `pending` means that readiness waits for the data path of
    /// the process that `process` identifies, `failure` that the request got no response, and
    /// `failing` that it got no response with an expected status.
    pub(super) fn pause(
        &mut self,
        pending: bool,
        process: (u32, bool),
        failure: Option<RequestFailure>,
        failing: bool,
        now: Duration,
    ) -> Duration {
        if !pending {
            self.pending = None;
            return match failure {
                _ if self.child && failing => DATA_PATH_FAILED_INTERVAL,
                _ if self.child => DATA_PATH_INTERVAL,
                Some(RequestFailure::Refused) => REFUSED_PAUSE,
                _ => DATA_PATH_EXTERNAL_INTERVAL,
            };
        }
        let since = match self.pending {
            Some((of, since)) if of == process => since,
            _ => now,
        };
        self.pending = Some((process, since));
        pending_interval(now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests;
