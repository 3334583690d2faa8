//! One stream to a discovery server: which reports were sent on it, which were acknowledged, and
//! when the next one is due.

use std::time::Duration;

use super::Saying;

/// A report that is not acknowledged within this time is sent once more; after the same time again
/// the stream is closed.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(10);
/// Delays after a state transition or a connect at which a report is repeated towards a plain
/// server. istiod can lose a report when its cache is stale.
const AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// Relative jitter of the heartbeat interval, drawn again for each heartbeat.
const JITTER: f64 = 0.2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Say(Saying),
    /// The server does not acknowledge reports; the stream must be closed.
    Silent,
    /// The stream must be replaced by a new one.
    Reopen,
}

/// The server's side of a stream on which a hello message has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ours {
    /// 0 while the WorkloadEntry is pending; the server then stores and acknowledges nothing.
    session: u64,
    heartbeat: Duration,
}

/// A report that is not acknowledged: when it was sent, and when it was repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    since: Duration,
    again: Option<Duration>,
}

/// State of one stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    opened: Duration,
    ours: Option<Ours>,
    /// Version of the last hello message that was accepted.
    pub(super) accepted: String,
    last_said: Duration,
    /// Generation of the last report.
    said: Option<u64>,
    heartbeat_at: Option<Duration>,
    /// Number of repetitions towards a plain server since the last state transition.
    again: usize,
    flipped: Duration,
    pending: Option<Pending>,
    acknowledged: Option<u64>,
    reopen_at: Option<Duration>,
}

impl Stream {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            opened: now,
            ours: None,
            accepted: String::new(),
            last_said: now,
            said: None,
            heartbeat_at: None,
            again: 0,
            flipped: now,
            pending: None,
            acknowledged: None,
            reopen_at: None,
        }
    }

    pub(super) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.opened)
    }

    pub(super) fn session(&self) -> Option<u64> {
        self.ours.as_ref().map(|ours| ours.session)
    }

    /// True if the server acknowledges reports.
    pub(super) fn is_acknowledging(&self) -> bool {
        self.ours.as_ref().is_some_and(|ours| ours.session != 0)
    }

    pub(super) fn is_acknowledged(&self, generation: u64) -> bool {
        self.acknowledged == Some(generation)
    }

    pub(super) fn last_said(&self) -> Duration {
        self.last_said
    }

    /// Records a hello message. Returns true if it starts a new session, whose server has not
    /// received the current health status yet.
    pub(super) fn hello(&mut self, session: u64, heartbeat: Duration) -> bool {
        let is_new = self.session() != Some(session);
        if is_new {
            self.pending = None;
            self.acknowledged = None;
        }
        self.ours = Some(Ours { session, heartbeat });
        is_new
    }

    /// Records that the health status was sent at `now`. `random` is in 0..1.
    pub(super) fn said(&mut self, now: Duration, generation: u64, plain: Option<Duration>, random: f64) {
        self.last_said = now;
        let jitter = 1.0 - JITTER + 2.0 * JITTER * random;
        let heartbeat = self.ours.as_ref().map_or(plain, |ours| Some(ours.heartbeat));
        self.heartbeat_at = heartbeat.map(|heartbeat| now + heartbeat.mul_f64(jitter));
        self.said = Some(generation);
        if self.is_acknowledging() {
            self.pending.get_or_insert(Pending { since: now, again: None });
        }
    }

    /// Records a state transition, after which reports to a plain server are repeated again.
    pub(super) fn flipped(&mut self, now: Duration) {
        self.again = 0;
        self.flipped = now;
    }

    /// Records an acknowledgement. One for an older generation only proves that the server still
    /// responds.
    pub(super) fn acknowledged(&mut self, now: Duration, generation: u64) {
        if self.said == Some(generation) {
            self.pending = None;
            self.acknowledged = Some(generation);
        } else if let Some(pending) = &mut self.pending {
            *pending = Pending { since: now, again: None };
        }
    }

    /// Schedules a new stream at `at`, unless an earlier one is already scheduled.
    pub(super) fn reopen_by(&mut self, at: Duration) {
        self.reopen_at.get_or_insert(at);
    }

    /// When to call [`Stream::due`] next.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let pending = self.pending.map(|pending| pending.again.unwrap_or(pending.since) + ACKNOWLEDGEMENT);
        [self.reopen_at, pending, self.again_at(), self.heartbeat_at].into_iter().flatten().min()
    }

    /// Returns the action that is due at `now`. If several are due, the following calls return the
    /// others.
    pub(super) fn due(&mut self, now: Duration) -> Due {
        let is_due = |at: Option<Duration>| at.is_some_and(|at| now >= at);
        if is_due(self.reopen_at) {
            return Due::Reopen;
        }
        if let Some(pending) = &mut self.pending {
            match pending.again {
                Some(again) if now >= again + ACKNOWLEDGEMENT => return Due::Silent,
                None if now >= pending.since + ACKNOWLEDGEMENT => {
                    pending.again = Some(now);
                    return Due::Say(Saying::Again);
                }
                _ => {}
            }
        }
        let again = self.again;
        while is_due(self.again_at()) {
            self.again += 1;
        }
        if again != self.again {
            return Due::Say(Saying::Again);
        }
        if is_due(self.heartbeat_at) { Due::Say(Saying::Anew) } else { Due::Nothing }
    }

    fn again_at(&self) -> Option<Duration> {
        let later = AGAIN.get(self.again).filter(|_| self.ours.is_none())?;
        Some(self.flipped + *later)
    }
}
