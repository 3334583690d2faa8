//! One question of `wait` and what its answer means.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::address::HttpUrl;
use crate::http_client::{self, Answer};

/// How much of a body is read.
const BODY_LIMIT: usize = 4 * 1024;
/// How much of it becomes the reason.
const REASON_LIMIT: usize = 1024;
/// What a held answer needs to arrive in time.
pub(super) const ANSWER_TIME: Duration = Duration::from_millis(100);

/// What came of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// 200.
    Ready,
    /// 503 and the reasons in its body. `held`: the server kept the question as long as it was asked to.
    NotReady {
        /// Printable ASCII.
        reason: String,
        /// Then the next question may follow at once.
        held: bool,
    },
    /// Another status.
    Answers(u16),
    /// 400 or 404 while the question had the key `wait`, which this server may not know.
    KeyRefused(u16),
    /// A connection, and no whole answer in time.
    Silent(Duration),
    /// A connection that ended without an answer.
    Closed,
    /// A connection that brought something else.
    NotHttp,
    /// No connection.
    Refused,
    /// No address for the name.
    UnknownName,
    /// Nobody said in time what the address is.
    NotResolved,
}

impl Attempt {
    /// Why not yet; `None`: ready.
    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Self::Ready => None,
            Self::NotReady { reason, .. } => Some(reason.clone()),
            Self::Answers(status) | Self::KeyRefused(status) => Some(format!("answers {status}")),
            Self::Silent(timeout) => Some(format!("no answer in {}ms", timeout.as_millis())),
            Self::Closed | Self::Refused => Some("connection refused".to_owned()),
            Self::NotHttp => Some("no HTTP answer".to_owned()),
            Self::UnknownName => Some("name unknown".to_owned()),
            Self::NotResolved => Some("name not resolved".to_owned()),
        }
    }

    /// Somebody accepted a connection, so there is a sidecar.
    pub(super) fn accepted(&self) -> bool {
        !matches!(self, Self::Refused | Self::UnknownName | Self::NotResolved)
    }
}

/// Asks one URL again and again, with the key `wait` as long as the server seems to know it.
pub(super) struct Attempts<'a> {
    url: &'a HttpUrl,
    knows_wait: bool,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(url: &'a HttpUrl) -> Self {
        Self { url, knows_wait: true }
    }

    /// Takes at most `timeout`, the look-up of a name included.
    pub(super) async fn next(&mut self, timeout: Duration) -> Attempt {
        let asked = Instant::now();
        let deadline = asked + timeout;
        let found = match timeout_at(deadline, http_client::look_up(&self.url.endpoint)).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => return Attempt::UnknownName,
            Err(_) => return Attempt::NotResolved,
        };
        // One that is not accepted in time: nobody is there yet.
        let Ok(Ok(connection)) = timeout_at(deadline, found.dial()).await else { return Attempt::Refused };
        let hold = self.hold(timeout);
        let path = self.path(hold);
        match timeout_at(deadline, connection.get(&self.url.authority, &path, BODY_LIMIT)).await {
            Ok(Ok(answer)) => self.judge(&answer, hold, asked.elapsed()),
            Ok(Err(error)) if error.is_garbage() => Attempt::NotHttp,
            Ok(Err(_)) => Attempt::Closed,
            Err(_) => Attempt::Silent(timeout),
        }
    }

    /// How long the server is asked to keep a question; too short a timeout leaves nothing of it.
    fn hold(&self, timeout: Duration) -> Option<Duration> {
        let millis = timeout.saturating_sub(ANSWER_TIME).as_millis().min(30_000);
        let hold = Duration::from_millis(u64::try_from(millis).expect("at most 30,000"));
        (self.knows_wait && !hold.is_zero()).then_some(hold)
    }

    fn path(&self, hold: Option<Duration>) -> String {
        let path = &self.url.path;
        match hold {
            Some(hold) => {
                let separator = if path.contains('?') { '&' } else { '?' };
                format!("{path}{separator}wait={}", hold.as_millis())
            }
            None => path.clone(),
        }
    }

    fn judge(&mut self, answer: &Answer, hold: Option<Duration>, took: Duration) -> Attempt {
        match answer.status {
            200 => Attempt::Ready,
            503 => Attempt::NotReady {
                reason: reason(&answer.body),
                held: hold.is_some_and(|hold| took >= hold),
            },
            status @ (400 | 404) if hold.is_some() => {
                self.knows_wait = false;
                Attempt::KeyRefused(status)
            }
            status => Attempt::Answers(status),
        }
    }
}

/// The body's lines as one, without anything that a terminal or a log would obey.
fn reason(body: &[u8]) -> String {
    let body = &body[..body.len().min(REASON_LIMIT)];
    let printable = |byte: &u8| if (0x20..=0x7e).contains(byte) { char::from(*byte) } else { '?' };
    let lines = body.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<String> =
        lines.filter(|line| !line.is_empty()).map(|line| line.iter().map(printable).collect()).collect();
    if lines.is_empty() { "answers 503".to_owned() } else { lines.join("; ") }
}

#[cfg(test)]
mod tests;
