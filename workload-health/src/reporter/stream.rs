//! PURE. One stream to a discovery server: what was said on it, what was answered, and when to speak next.

use std::time::Duration;

use super::Saying;

/// A report that is not acknowledged for so long is said once more; after the same time again the stream is given up.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(10);
/// A plain server is told again so long after a flip or a connect: istiod forgets a report that meets a stale cache.
const AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// A heartbeat comes so much earlier or later, each time anew.
const JITTER: f64 = 0.2;

/// What is due on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// The level is to be said.
    Say(Saying),
    /// Nobody acknowledges: the stream is to be given up.
    Silent,
    /// A new one is wanted.
    Reopen,
}

/// A server that says hello.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ours {
    /// 0: pending, so nothing is stored and nothing acknowledged.
    session: u64,
    heartbeat: Duration,
}

/// A report without acknowledgement: since when, and when it was said once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    since: Duration,
    again: Option<Duration>,
}

/// One stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    opened: Duration,
    ours: Option<Ours>,
    /// The version of the last hello that was taken.
    pub(super) accepted: String,
    last_said: Duration,
    /// The generation that was said last.
    said: Option<u64>,
    heartbeat_at: Option<Duration>,
    /// How often a plain server was told again since the last flip, and when that was.
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

    /// Does somebody here acknowledge what is said?
    pub(super) fn is_acknowledging(&self) -> bool {
        self.ours.as_ref().is_some_and(|ours| ours.session != 0)
    }

    pub(super) fn is_acknowledged(&self, generation: u64) -> bool {
        self.acknowledged == Some(generation)
    }

    pub(super) fn last_said(&self) -> Duration {
        self.last_said
    }

    /// `true`: the first one, or of another session, which has not heard the level yet.
    pub(super) fn hello(&mut self, session: u64, heartbeat: Duration) -> bool {
        let is_new = self.session() != Some(session);
        if is_new {
            self.pending = None;
            self.acknowledged = None;
        }
        self.ours = Some(Ours { session, heartbeat });
        is_new
    }

    /// The level is said now, in this generation. `random` is in 0..1.
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

    /// The level has flipped: a plain server is to be told again.
    pub(super) fn flipped(&mut self, now: Duration) {
        self.again = 0;
        self.flipped = now;
    }

    /// An older generation than the last one shows that somebody listens, and no more.
    pub(super) fn acknowledged(&mut self, now: Duration, generation: u64) {
        if self.said == Some(generation) {
            self.pending = None;
            self.acknowledged = Some(generation);
        } else if let Some(pending) = &mut self.pending {
            *pending = Pending { since: now, again: None };
        }
    }

    /// A new stream is wanted then, unless one is wanted earlier.
    pub(super) fn reopen_by(&mut self, at: Duration) {
        self.reopen_at.get_or_insert(at);
    }

    /// When [`Stream::due`] is to be asked next.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let pending = self.pending.map(|pending| pending.again.unwrap_or(pending.since) + ACKNOWLEDGEMENT);
        [self.reopen_at, pending, self.again_at(), self.heartbeat_at].into_iter().flatten().min()
    }

    /// What is due at `now`; the next thing, if there is one, is due at once.
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
