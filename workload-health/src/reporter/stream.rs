//! One stream to a discovery server: which reports were sent on it, which were acknowledged, and
//! when the next one is due.

use std::time::Duration;

use super::Attempt;

/// A report that is not acknowledged within this time is sent once more; after the same time again
/// the stream is closed.
const ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// Delays after a state transition or a connect at which a report is repeated towards an Istio
/// server. istiod can lose a report when its cache is stale.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// Relative jitter of the heartbeat interval, drawn again for each heartbeat.
const JITTER: f64 = 0.2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    None,
    Send(Attempt),
    /// The server does not acknowledge reports; the stream must be closed.
    Unresponsive,
}

/// The server's side of a stream on which a hello message has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    /// 0 while the WorkloadEntry is pending; the server then stores and acknowledges nothing.
    session: u64,
    heartbeat: Duration,
}

/// A report that is not acknowledged: when it was sent, and when it was repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    since: Duration,
    retried: Option<Duration>,
}

/// State of one stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    app_health: Option<Session>,
    /// Version of the last hello message that was accepted.
    pub(super) accepted: String,
    last_sent: Duration,
    /// Generation of the last report.
    last_generation: Option<u64>,
    heartbeat_at: Option<Duration>,
    /// Number of repetitions towards an Istio server since the last state transition.
    retries: usize,
    last_transition: Duration,
    pending: Option<Pending>,
    acknowledged: Option<u64>,
}

impl Stream {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            app_health: None,
            accepted: String::new(),
            last_sent: now,
            last_generation: None,
            heartbeat_at: None,
            retries: 0,
            last_transition: now,
            pending: None,
            acknowledged: None,
        }
    }

    pub(super) fn session(&self) -> Option<u64> {
        self.app_health.as_ref().map(|app_health| app_health.session)
    }

    /// True if the server acknowledges reports.
    pub(super) fn server_acknowledges(&self) -> bool {
        self.app_health.as_ref().is_some_and(|app_health| app_health.session != 0)
    }

    pub(super) fn is_acknowledged(&self, generation: u64) -> bool {
        self.acknowledged == Some(generation)
    }

    pub(super) fn last_sent(&self) -> Duration {
        self.last_sent
    }

    /// Records a hello message. Returns true if it starts a new session, whose server has not
    /// received the current health status yet.
    pub(super) fn hello(&mut self, session: u64, heartbeat: Duration) -> bool {
        let is_new = self.session() != Some(session);
        if is_new {
            self.pending = None;
            self.acknowledged = None;
        }
        self.app_health = Some(Session { session, heartbeat });
        is_new
    }

    /// Records that the health status was sent at `now`. `random` is in 0..1.
    pub(super) fn sent(
        &mut self,
        now: Duration,
        generation: u64,
        istio_heartbeat: Option<Duration>,
        random: f64,
    ) {
        self.last_sent = now;
        let jitter = 1.0 - JITTER + 2.0 * JITTER * random;
        let heartbeat =
            self.app_health.as_ref().map_or(istio_heartbeat, |app_health| Some(app_health.heartbeat));
        self.heartbeat_at = heartbeat.map(|heartbeat| now + heartbeat.mul_f64(jitter));
        self.last_generation = Some(generation);
        if self.server_acknowledges() {
            self.pending.get_or_insert(Pending { since: now, retried: None });
        }
    }

    /// Records a state transition, after which reports to an Istio server are repeated again.
    pub(super) fn transitioned(&mut self, now: Duration) {
        self.retries = 0;
        self.last_transition = now;
    }

    /// Records an acknowledgement. One for an older generation only proves that the server still
    /// responds.
    pub(super) fn acknowledged(&mut self, now: Duration, generation: u64) {
        if self.last_generation == Some(generation) {
            self.pending = None;
            self.acknowledged = Some(generation);
        } else if let Some(pending) = &mut self.pending {
            *pending = Pending { since: now, retried: None };
        }
    }

    /// When to call [`Stream::due`] next.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let pending = self.pending.map(|pending| pending.retried.unwrap_or(pending.since) + ACK_TIMEOUT);
        [pending, self.retry_at(), self.heartbeat_at].into_iter().flatten().min()
    }

    /// Returns the action that is due at `now`. If several are due, the following calls return the
    /// others.
    pub(super) fn due(&mut self, now: Duration) -> Due {
        let is_due = |at: Option<Duration>| at.is_some_and(|at| now >= at);
        if let Some(pending) = &mut self.pending {
            match pending.retried {
                Some(retried) if now >= retried + ACK_TIMEOUT => return Due::Unresponsive,
                None if now >= pending.since + ACK_TIMEOUT => {
                    pending.retried = Some(now);
                    return Due::Send(Attempt::Retry);
                }
                _ => {}
            }
        }
        let before = self.retries;
        while is_due(self.retry_at()) {
            self.retries += 1;
        }
        if before != self.retries {
            return Due::Send(Attempt::Retry);
        }
        if is_due(self.heartbeat_at) { Due::Send(Attempt::New) } else { Due::None }
    }

    fn retry_at(&self) -> Option<Duration> {
        let later = RETRY_AFTER.get(self.retries).filter(|_| self.app_health.is_none())?;
        Some(self.last_transition + *later)
    }
}
