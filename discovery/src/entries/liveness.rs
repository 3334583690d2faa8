//! Decides when an entry counts as disconnected, its agent as silent, and its first probe result as
//! overdue.

use std::time::Duration;

use super::Settings;

/// An agent that loses a stream older than this reconnects with short backoff, so the normal grace
/// period applies to it. An agent that loses a younger stream may still have a long backoff.
const STABLE_STREAM: Duration = Duration::from_secs(30);

/// The deadlines by which an entry must have a stream, a report and a probe result.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// True if the entry is older than the process, so that its agent may reconnect until the end of
    /// the restart grace period.
    is_restored: bool,
    stream_by: Option<Duration>,
    report_by: Option<Duration>,
    result_by: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) no_result: bool,
    pub(super) silent: bool,
    pub(super) disconnected: bool,
}

impl Liveness {
    /// Waits until the end of the restart grace period for a stream, and if an agent had a session
    /// for its report.
    pub(super) fn await_restart(&mut self, deadline: Duration, has_session: bool) {
        self.stream_by = Some(deadline);
        self.report_by = has_session.then_some(deadline);
    }

    /// Applies that the entry is older than the process, or than its last suspension, which counts as a
    /// restart.
    pub(super) fn restarted(&mut self) {
        self.is_restored = true;
    }

    /// Returns the time before which nothing is concluded from the silence of an agent.
    pub(super) fn earliest(&self, settings: &Settings) -> Duration {
        if self.is_restored { settings.restart_grace } else { Duration::ZERO }
    }

    fn grace_from(&self, settings: &Settings, from: Duration) -> Duration {
        from.saturating_add(settings.disconnect_grace).max(self.earliest(settings))
    }

    /// Stops waiting for a stream: one is open, here or at another instance.
    pub(super) fn expect_no_stream(&mut self) {
        self.stream_by = None;
    }

    /// Applies the age of a stream that was lost.
    pub(super) fn stream_lost(&mut self, age: Duration) {
        self.is_restored &= age < STABLE_STREAM;
    }

    /// Starts the grace period of an entry whose last stream was lost.
    pub(super) fn last_stream_lost(&mut self, settings: &Settings, now: Duration) {
        self.stream_by = Some(self.grace_from(settings, now));
    }

    /// Starts the grace period of an entry whose reporting stream was lost. It is not moved when
    /// other streams of the entry end later.
    pub(super) fn reporter_lost(&mut self, settings: &Settings, now: Duration) {
        self.report_by = Some(self.grace_from(settings, now));
    }

    /// Starts the grace period for a stream, unless it runs already.
    pub(super) fn expect_stream(&mut self, settings: &Settings, from: Duration) {
        self.stream_by.get_or_insert(self.grace_from(settings, from));
    }

    /// Starts the grace period for a report, unless it runs already.
    pub(super) fn expect_report(&mut self, settings: &Settings, from: Duration) {
        self.report_by.get_or_insert(self.grace_from(settings, from));
    }

    /// Waits for a probe result. The deadline is not extended: an agent in a restart loop never has
    /// a probe result either.
    pub(super) fn expect_result(&mut self, deadline: Duration) {
        self.result_by.get_or_insert(deadline);
    }

    /// Waits for the next report of an app-health agent: three heartbeats, each with the maximum
    /// jitter.
    pub(super) fn reported(&mut self, settings: &Settings, now: Duration) {
        let heartbeats = settings.heartbeat_at_most().saturating_mul(3);
        self.report_by = Some(now.saturating_add(heartbeats).max(self.earliest(settings)));
    }

    pub(super) fn result_arrived(&mut self) {
        self.result_by = None;
    }

    /// Stops waiting for a report: the agent reports to another instance, or sends no heartbeats.
    pub(super) fn expect_no_report(&mut self) {
        self.report_by = None;
    }

    /// Stops all deadlines, because another instance handles them.
    pub(super) fn stop(&mut self) {
        (self.stream_by, self.report_by, self.result_by) = (None, None, None);
    }

    /// Moves deadlines that would pass before `earliest`.
    pub(super) fn extend(&mut self, earliest: Duration) {
        for deadline in [&mut self.stream_by, &mut self.report_by, &mut self.result_by] {
            *deadline = deadline.map(|deadline| deadline.max(earliest));
        }
    }

    pub(super) fn expects_stream(&self) -> bool {
        self.stream_by.is_some()
    }

    pub(super) fn expects_report(&self) -> bool {
        self.report_by.is_some()
    }

    /// Removes the deadlines that have passed.
    pub(super) fn take_passed(&mut self, now: Duration) -> Passed {
        Passed {
            no_result: take_passed(&mut self.result_by, now),
            silent: take_passed(&mut self.report_by, now),
            disconnected: take_passed(&mut self.stream_by, now),
        }
    }

    pub(super) fn due(&self) -> Option<Duration> {
        [self.stream_by, self.report_by, self.result_by].into_iter().flatten().min()
    }
}

/// Removes a deadline if it has passed.
pub(super) fn take_passed(deadline: &mut Option<Duration>, now: Duration) -> bool {
    deadline.take_if(|deadline| *deadline <= now).is_some()
}
